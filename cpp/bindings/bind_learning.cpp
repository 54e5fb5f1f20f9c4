#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "bind.h"
#include "draftd/engine.h"
#include "draftd/model.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

using FloatArray = py::array_t<float, py::array::c_style>;

std::vector<float> floats_of(const FloatArray& array) { return {array.data(), array.data() + array.size()}; }

FloatArray array_of(const std::vector<float>& values, py::ssize_t columns) {
  FloatArray array({static_cast<py::ssize_t>(values.size()) / columns, columns});
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

std::unique_ptr<Model> model_of(const FloatArray& hits, const FloatArray& trials, const FloatArray& agreement,
                                const FloatArray& standing, const FloatArray& correction, std::uint64_t lessons) {
  return std::make_unique<Model>(ModelTables{floats_of(hits), floats_of(trials), floats_of(agreement),
                                             floats_of(standing), floats_of(correction), lessons});
}

}  // namespace

void bind_model(py::module_& module) {
  constexpr auto kInputs = static_cast<py::ssize_t>(Candidate::kInputs);
  const auto flat = [](const std::vector<float>& values) { return array_of(values, 1).reshape({-1}); };
  py::class_<Model>(module, "Model")
      .def(py::init<>())
      .def(py::init(&model_of), py::kw_only(), py::arg("hits"), py::arg("trials"), py::arg("agreement"),
           py::arg("standing"), py::arg("correction"), py::arg("lessons"))
      .def_static(
          "load", [](const py::bytes& saved) { return Model::load(bytes_of(saved)); }, py::arg("saved"))
      .def("save", [](const Model& self) { return packed(self.save()); })
      .def_property_readonly("hits", [flat](const Model& self) { return flat(self.tables().hits); })
      .def_property_readonly("trials", [flat](const Model& self) { return flat(self.tables().trials); })
      .def_property_readonly("agreement", [](const Model& self) { return array_of(self.tables().agreement, kInputs); })
      .def_property_readonly("standing", [](const Model& self) { return array_of(self.tables().standing, kInputs); })
      .def_property_readonly("correction", [flat](const Model& self) { return flat(self.tables().correction); })
      .def_property_readonly("lessons", &Model::lessons);
}

void bind_learning(py::class_<Engine>& engine) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  engine.def("lessons", &Engine::lessons, Unlocked())
      .def(
          "learned",
          [](const Engine& self, std::uint32_t name_space) {
            std::vector<std::uint8_t> bytes;
            {
              const py::gil_scoped_release release;
              bytes = self.learned(name_space);
            }
            return packed(bytes);
          },
          py::arg("namespace"))
      .def(
          "restore_learned",
          [](Engine& self, std::uint32_t name_space, const py::bytes& saved, double now) {
            const auto bytes = bytes_of(saved);
            const py::gil_scoped_release release;
            self.restore_learned(name_space, bytes, now);
          },
          py::arg("namespace"), py::arg("saved"), py::arg("now"))
      .def("forget_learned", &Engine::forget_learned, py::arg("namespace"), Unlocked());
}

}  // namespace draftd::bindings
