// Names for the indexes of a process: addresses are used again, these are not.
#pragma once

#include <cstdint>

namespace draftd {

std::uint64_t next_identity();

}  // namespace draftd
