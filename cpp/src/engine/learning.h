// What a namespace learned from its verifiers. Nothing of it is ever read for
// another namespace.
#pragma once

#include <memory>

#include "draftd/model.h"

namespace draftd {

// A copy of the start, taught since; until the first lesson there is none, so
// that a namespace which never learns costs nothing.
struct Learned {
  std::unique_ptr<Model> model;
  double last_taught = 0;
};

}  // namespace draftd
