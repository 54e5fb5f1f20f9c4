#include <cstdint>

#include "bind.h"
#include "draftd/drafting.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

DraftPolicy policy(int preset, std::uint32_t max_depth, std::uint32_t max_breadth, double min_survival,
                   double max_spec_factor, double min_token_prob) {
  return {static_cast<Preset>(preset), max_depth, max_breadth, min_survival, max_spec_factor, min_token_prob};
}

}  // namespace

void bind_policy(py::module_& module) {
  constexpr DraftPolicy usual;
  py::class_<DraftPolicy>(module, "DraftPolicy")
      .def(py::init(&policy), py::kw_only(), py::arg("preset") = static_cast<int>(usual.preset),
           py::arg("max_depth") = usual.max_depth, py::arg("max_breadth") = usual.max_breadth,
           py::arg("min_survival") = usual.min_survival, py::arg("max_spec_factor") = usual.max_spec_factor,
           py::arg("min_token_prob") = usual.min_token_prob);
}

}  // namespace draftd::bindings
