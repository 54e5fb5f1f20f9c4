// One function per bound class; module.cpp calls them all.
#pragma once

#include <pybind11/pybind11.h>

namespace draftd {
class Engine;
}

namespace draftd::bindings {

void bind_index(pybind11::module_& module);
void bind_segment(pybind11::module_& module);
void bind_catalogue(pybind11::module_& module);
void bind_columns(pybind11::module_& module);
void bind_policy(pybind11::module_& module);
void bind_model(pybind11::module_& module);
void bind_engine(pybind11::module_& module);
void bind_ring(pybind11::module_& module);
void bind_ngram(pybind11::module_& module);
// Parts of the engine.
void bind_step(pybind11::module_& module, pybind11::class_<Engine>& engine);
void bind_histories(pybind11::module_& module, pybind11::class_<Engine>& engine);
void bind_explain(pybind11::module_& module, pybind11::class_<Engine>& engine);
void bind_tapes(pybind11::module_& module, pybind11::class_<Engine>& engine);
void bind_learning(pybind11::class_<Engine>& engine);

}  // namespace draftd::bindings
