#include <pybind11/pybind11.h>

#include "bind.h"
#include "draftd/index.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "draftd's core: indexes, sessions, drafting";
  pybind11::register_local_exception<draftd::IntegrityError>(module, "IntegrityError", PyExc_RuntimeError);
  draftd::bindings::bind_index(module);
  draftd::bindings::bind_segment(module);
  draftd::bindings::bind_catalogue(module);
  draftd::bindings::bind_columns(module);
  draftd::bindings::bind_policy(module);
  draftd::bindings::bind_model(module);
  draftd::bindings::bind_engine(module);
  draftd::bindings::bind_ring(module);
  draftd::bindings::bind_ngram(module);
}
