#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bind.h"
#include "draftd/engine.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

using Int64Array = py::array_t<std::int64_t, py::array::c_style>;

// An array over a column of `owner`, which it keeps alive.
template <typename T>
py::array_t<T> array_of(const std::vector<T>& column, const py::object& owner) {
  return py::array_t<T>(static_cast<py::ssize_t>(column.size()), column.data(), owner);
}

std::vector<std::int64_t> int64s_of(const Int64Array& array, const char* name) {
  require(array.ndim() == 1, std::string(name) + ": expected one dimension");
  return {array.data(), array.data() + array.size()};
}

// Columns that came from outside, known to fit together.
HistoryDocuments documents_of(HistoryKey key, std::uint64_t generation, const TokenArray& token_ids,
                              const Int64Array& document_ends, std::vector<std::string> labels,
                              const Int64Array& times) {
  const std::span<const Token> tokens = tokens_of(token_ids);
  require_ids(tokens);
  HistoryDocuments documents{std::move(key),
                             generation,
                             {tokens.begin(), tokens.end()},
                             int64s_of(document_ends, "document_ends"),
                             std::move(labels),
                             int64s_of(times, "times")};
  const std::vector<std::int64_t>& ends = documents.document_end;
  require(documents.labels.size() == ends.size(), "labels and document_ends differ in length");
  require(documents.times.size() == ends.size(), "times and document_ends differ in length");
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    require(end > begin, "document_ends: a document ends at " + std::to_string(end) + ", not behind its begin at " +
                             std::to_string(begin));
    begin = end;
  }
  require(static_cast<std::size_t>(begin) == tokens.size(),
          "document_ends end at " + std::to_string(begin) + " of " + std::to_string(tokens.size()) + " tokens");
  return documents;
}

}  // namespace

void bind_histories(py::module_& module, py::class_<Engine>& engine) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<HistoryDocuments>(module, "HistoryDocuments")
      .def_property_readonly("namespace", [](const HistoryDocuments& self) { return self.history.name_space; })
      .def_property_readonly("group", [](const HistoryDocuments& self) { return self.history.group; })
      .def_readonly("generation", &HistoryDocuments::generation)
      .def_property_readonly(
          "token_ids", [](const py::object& self) { return array_of(self.cast<HistoryDocuments&>().tokens, self); })
      .def_property_readonly(
          "document_ends",
          [](const py::object& self) { return array_of(self.cast<HistoryDocuments&>().document_end, self); })
      .def_readonly("labels", &HistoryDocuments::labels)
      .def_property_readonly(
          "times", [](const py::object& self) { return array_of(self.cast<HistoryDocuments&>().times, self); })
      .def("__repr__", [](const HistoryDocuments& self) {
        return "<HistoryDocuments: " + std::to_string(self.document_end.size()) + " documents, " +
               std::to_string(self.tokens.size()) + " tokens, namespace " + std::to_string(self.history.name_space) +
               ", group '" + self.history.group + "', generation " + std::to_string(self.generation) + ">";
      });

  py::class_<HistoryState>(module, "HistoryState")
      .def_property_readonly("namespace", [](const HistoryState& self) { return self.history.name_space; })
      .def_property_readonly("group", [](const HistoryState& self) { return self.history.group; })
      .def_readonly("generation", &HistoryState::generation)
      .def_readonly("head_tokens", &HistoryState::head_tokens)
      .def_readonly("head_bytes", &HistoryState::head_bytes)
      .def_readonly("frozen_tokens", &HistoryState::frozen_tokens)
      .def_readonly("segments", &HistoryState::segments)
      .def_readonly("oldest", &HistoryState::oldest);

  engine.def("drain_history", &Engine::drain_history, Unlocked())
      .def("histories", &Engine::histories, Unlocked())
      .def(
          "freeze_history",
          [](Engine& self, std::uint32_t name_space, std::string group) {
            return self.freeze_history({name_space, std::move(group)});
          },
          py::arg("namespace"), py::arg("group"), Unlocked())
      .def(
          "publish_history",
          [](Engine& self, std::uint32_t name_space, std::string group,
             const std::vector<std::shared_ptr<Segment>>& segments, bool drop_frozen, double now) {
            self.publish_history({name_space, std::move(group)}, SegmentSet(segments.begin(), segments.end()),
                                 drop_frozen, now);
          },
          py::arg("namespace"), py::arg("group"), py::arg("segments"), py::kw_only(), py::arg("drop_frozen"),
          py::arg("now"), Unlocked())
      .def(
          "restore_history",
          [](Engine& self, std::uint32_t name_space, std::string group, std::uint64_t generation,
             const TokenArray& token_ids, const Int64Array& document_ends, std::vector<std::string> labels,
             const Int64Array& times, double now) {
            const HistoryDocuments documents = documents_of({name_space, std::move(group)}, generation, token_ids,
                                                            document_ends, std::move(labels), times);
            const py::gil_scoped_release release;
            self.restore_history(documents, now);
          },
          py::kw_only(), py::arg("namespace"), py::arg("group"), py::arg("generation"), py::arg("token_ids"),
          py::arg("document_ends"), py::arg("labels"), py::arg("times"), py::arg("now"))
      .def(
          "forget_requests",
          [](Engine& self, const std::vector<std::uint32_t>& namespaces, const std::optional<std::string>& group,
             const std::vector<std::string>& labels) {
            return self.forget_requests(namespaces, group, {labels.begin(), labels.end()});
          },
          py::arg("namespaces"), py::arg("group"), py::arg("labels"), Unlocked());
}

}  // namespace draftd::bindings
