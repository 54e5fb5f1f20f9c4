#include "bind.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arrays.h"
#include "draftd/nearest.h"
#include "draftd/segment.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

using Columns = py::array_t<std::int64_t, py::array::c_style>;
using Flags = py::array_t<bool, py::array::c_style>;

template <typename T>
std::span<const T> row_of(const py::array_t<T, py::array::c_style>& array, const char* name) {
  if (array.ndim() != 1) throw std::invalid_argument(std::string(name) + ": expected one dimension");
  return {array.data(), static_cast<std::size_t>(array.size())};
}

// Views of Python's own strings; they live as long as the list is not changed.
std::vector<std::string_view> utf8_of(const py::list& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (const py::handle text : texts) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) throw py::error_already_set();
    views.emplace_back(data, static_cast<std::size_t>(size));
  }
  return views;
}

void add(SegmentBuilder& self, const TokenArray& token_ids, const Columns& document_ends, const py::list& labels,
         const Columns& times) {
  const std::span<const Token> tokens = tokens_of(token_ids);
  const std::span<const std::int64_t> ends = row_of(document_ends, "document_ends");
  const std::span<const std::int64_t> seconds = row_of(times, "times");
  const std::vector<std::string_view> names = utf8_of(labels);
  if (names.size() != ends.size() || seconds.size() != ends.size()) {
    throw std::invalid_argument("document_ends, labels and times differ in length");
  }
  const py::gil_scoped_release release;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < begin || std::cmp_greater(ends[i], tokens.size())) {
      throw std::invalid_argument("document_ends: document " + std::to_string(i) + " ends at " +
                                  std::to_string(ends[i]) + ", outside the token ids or before its start");
    }
    begin = ends[i];
  }
  if (std::cmp_not_equal(begin, tokens.size())) {
    throw std::invalid_argument("document_ends: the last document ends at " + std::to_string(begin) + " of " +
                                std::to_string(tokens.size()) + " token ids");
  }
  require_ids(tokens);
  begin = 0;
  for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
    self.add(tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends[i] - begin)), names[i],
             seconds[i]);
  }
}

void add_segment(SegmentBuilder& self, const Segment& segment, const Flags& keep) {
  const std::span<const bool> kept = row_of(keep, "keep");
  if (kept.size() != segment.documents()) {
    throw std::invalid_argument("keep: " + std::to_string(kept.size()) + " flags for " +
                                std::to_string(segment.documents()) + " documents");
  }
  const py::gil_scoped_release release;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) self.add(segment, i);
  }
}

py::array_t<std::int32_t> token_ids(const Segment& self) {
  py::array_t<std::int32_t> ids(static_cast<py::ssize_t>(self.tokens()));
  Token* into = ids.mutable_data();
  const py::gil_scoped_release release;
  for (std::size_t i = 0; i < self.documents(); ++i) {
    const SegmentDocument document = self.document(i);
    const std::size_t size = document.end - document.begin;
    self.read(document.begin, {into, size});
    into += size;
  }
  return ids;
}

py::array_t<std::int64_t> document_ends(const Segment& self) {
  py::array_t<std::int64_t> ends(static_cast<py::ssize_t>(self.documents()));
  std::int64_t* into = ends.mutable_data();
  const py::gil_scoped_release release;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < self.documents(); ++i) {
    const SegmentDocument document = self.document(i);
    end += static_cast<std::int64_t>(document.end - document.begin);
    *into++ = end;
  }
  return ends;
}

py::array_t<std::int64_t> times(const Segment& self) {
  py::array_t<std::int64_t> times(static_cast<py::ssize_t>(self.documents()));
  std::int64_t* into = times.mutable_data();
  const py::gil_scoped_release release;
  for (std::size_t i = 0; i < self.documents(); ++i) *into++ = self.document(i).time;
  return times;
}

Flags labelled(const Segment& self, const py::list& labels) {
  const std::vector<std::string_view> views = utf8_of(labels);
  const std::unordered_set<std::string_view> wanted(views.begin(), views.end());
  Flags flags(static_cast<py::ssize_t>(self.documents()));
  bool* into = flags.mutable_data();
  const py::gil_scoped_release release;
  for (std::size_t i = 0; i < self.documents(); ++i) *into++ = wanted.contains(self.document(i).label);
  return flags;
}

// A label is UTF-8 unless the file was made to do harm.
py::str text_of(std::string_view bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

py::list labels(const Segment& self) {
  py::list labels(self.documents());
  for (std::size_t i = 0; i < self.documents(); ++i) labels[i] = text_of(self.document(i).label);
  return labels;
}

std::vector<std::pair<Token, std::uint32_t>> frequent_tokens(const Segment& self) {
  std::vector<std::pair<Token, std::uint32_t>> ranked;
  for (const FrequentToken& frequent : self.frequent_tokens()) ranked.emplace_back(frequent.token, frequent.count);
  return ranked;
}

std::string counted(std::size_t tokens, std::size_t documents) {
  return std::to_string(tokens) + " tokens in " + std::to_string(documents) + " documents";
}

// As (length, age) of each occurrence.
std::vector<std::pair<std::uint32_t, std::uint32_t>> nearest(const std::vector<std::shared_ptr<Segment>>& segments,
                                                             const TokenArray& context) {
  const SegmentSet set(segments.begin(), segments.end());
  Nearest found;
  NearestSearch search;
  search.add(set, tokens_of(context), found);
  search.run();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> occurrences;
  for (const Occurrence& occurrence : std::span(found.occurrences).first(found.size)) {
    occurrences.emplace_back(occurrence.length, occurrence.age);
  }
  return occurrences;
}

}  // namespace

void bind_segment(py::module_& module) {
  py::register_local_exception<SegmentError>(module, "SegmentError", PyExc_ValueError);
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const std::system_error& error) {
      // OSError picks its own subclass by the number.
      PyErr_SetObject(PyExc_OSError, py::make_tuple(error.code().value(), error.what()).ptr());
    }
  });

  // What it takes to give memory back must not hold Python's lock.
  py::class_<Segment, std::shared_ptr<Segment>>(module, "Segment", py::release_gil_before_calling_cpp_dtor())
      .def_static(
          "open",
          [](const std::filesystem::path& path) {
            const py::gil_scoped_release release;
            return std::const_pointer_cast<Segment>(Segment::open(path.string()));
          },
          py::arg("path"))
      .def("token_ids", &token_ids)
      .def("document_ends", &document_ends)
      .def("labels", &labels)
      .def("times", &times)
      .def("labelled", &labelled, py::arg("labels"))
      .def("frequent_tokens", &frequent_tokens)
      .def_property_readonly("tokens", &Segment::tokens)
      .def_property_readonly("documents", &Segment::documents)
      .def_property_readonly("distinct_tokens", &Segment::distinct_tokens)
      .def_property_readonly("memory_size", &Segment::memory_size)
      .def_property_readonly("fingerprint", [](const Segment& self) { return text_of(self.fingerprint()); })
      .def_property_readonly("path", [](const Segment& self) { return std::filesystem::path(self.path()); })
      .def("__repr__", [](const Segment& self) {
        return "<Segment " + self.path() + ": " + counted(self.tokens(), self.documents()) + ", " +
               std::to_string(self.memory_size()) + " bytes>";
      });

  py::class_<SegmentBuilder>(module, "SegmentBuilder", py::release_gil_before_calling_cpp_dtor())
      .def(py::init<std::string>(), py::arg("fingerprint"))
      .def("add", &add, py::arg("token_ids"), py::arg("document_ends"), py::arg("labels"), py::arg("times"))
      .def("add_segment", &add_segment, py::arg("segment"), py::arg("keep"))
      .def(
          "write",
          [](SegmentBuilder& self, const std::filesystem::path& path) {
            const py::gil_scoped_release release;
            self.write(path.string());
          },
          py::arg("path"))
      .def_property_readonly("tokens", &SegmentBuilder::tokens)
      .def_property_readonly("documents", &SegmentBuilder::documents)
      .def_property_readonly("memory_size", &SegmentBuilder::memory_size)
      .def("__repr__", [](const SegmentBuilder& self) {
        return "<SegmentBuilder: " + counted(self.tokens(), self.documents()) + ", " +
               std::to_string(self.memory_size()) + " bytes>";
      });

  module.def("nearest", &nearest, py::arg("segments"), py::arg("context"));
}

}  // namespace draftd::bindings
