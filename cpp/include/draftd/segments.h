// The sealed part of a collection, oldest segment first. A set never changes:
// a collection that does gets a new one, and who still reads the old one keeps it.
#pragma once

#include <memory>
#include <vector>

#include "draftd/segment.h"

namespace draftd {

using SegmentSet = std::vector<std::shared_ptr<const Segment>>;

}  // namespace draftd
