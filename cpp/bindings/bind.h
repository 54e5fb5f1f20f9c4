// One function per bound class; module.cpp calls them all.
#pragma once

#include <pybind11/pybind11.h>

namespace draftd::bindings {

void bind_index(pybind11::module_& module);
void bind_segment(pybind11::module_& module);
void bind_engine(pybind11::module_& module);

}  // namespace draftd::bindings
