#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "arrays.h"
#include "bind.h"
#include "draftd/engine.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

Explanation explain(Engine& self, std::uint32_t name_space, const py::bytes& prompt, const py::bytes& output,
                    std::uint32_t vocabulary_size, const py::bytes& stop_ids, bool chain, std::uint32_t max_nodes,
                    const DraftPolicy& policy, std::string group, bool hide_history,
                    std::optional<std::vector<std::uint32_t>> corpora) {
  const auto given = column<Token>(prompt, "prompt");
  const auto produced = column<Token>(output, "output");
  const auto stops = column<Token>(stop_ids, "stop_ids");
  RequestOptions options;
  if (vocabulary_size != 0 && vocabulary_size < INT32_MAX) options.vocabulary = static_cast<Token>(vocabulary_size);
  options.stop_ids.assign(stops.begin(), stops.end());
  options.chain = chain;
  options.max_nodes = max_nodes;
  options.policy = policy;
  options.group = std::move(group);
  options.reads_history = !hide_history;
  options.corpora = std::move(corpora);
  const py::gil_scoped_release release;
  return self.explain(name_space, options, given, produced);
}

}  // namespace

void bind_explain(py::module_& module, py::class_<Engine>& engine) {
  py::class_<DocumentPlace>(module, "DocumentPlace")
      .def_readonly("label", &DocumentPlace::label)
      .def_readonly("position", &DocumentPlace::position)
      .def_readonly("time", &DocumentPlace::time);
  py::class_<Evidence>(module, "Evidence")
      .def_property_readonly("source", [](const Evidence& self) { return static_cast<int>(self.source.kind); })
      .def_property_readonly("corpus", [](const Evidence& self) { return self.source.corpus; })
      .def_property_readonly("running", [](const Evidence& self) { return self.source.running; })
      .def_readonly("length", &Evidence::length)
      .def_readonly("count", &Evidence::count)
      .def_readonly("total", &Evidence::total)
      .def_readonly("last", &Evidence::last);
  py::class_<ExplainedNode>(module, "ExplainedNode")
      .def_property_readonly("token", [](const ExplainedNode& self) { return self.node.token; })
      .def_property_readonly("parent", [](const ExplainedNode& self) { return self.node.parent; })
      .def_property_readonly("source", [](const ExplainedNode& self) { return static_cast<int>(self.node.source); })
      .def_property_readonly("survival", [](const ExplainedNode& self) { return self.node.survival; })
      .def_readonly("evidence", &ExplainedNode::evidence);
  py::class_<ReadSource>(module, "ReadSource")
      .def_property_readonly("source", [](const ReadSource& self) { return static_cast<int>(self.source.kind); })
      .def_property_readonly("corpus", [](const ReadSource& self) { return self.source.corpus; })
      .def_property_readonly("running", [](const ReadSource& self) { return self.source.running; })
      .def_readonly("tokens", &ReadSource::tokens)
      .def_readonly("documents", &ReadSource::documents);
  py::class_<Explanation>(module, "Explanation")
      .def_property_readonly("reason", [](const Explanation& self) { return static_cast<int>(self.reason); })
      .def_readonly("sources", &Explanation::sources)
      .def_readonly("nodes", &Explanation::nodes);

  engine.def("explain", &explain, py::kw_only(), py::arg("namespace"), py::arg("prompt"), py::arg("output"),
             py::arg("vocabulary_size"), py::arg("stop_ids"), py::arg("chain"), py::arg("max_nodes"), py::arg("policy"),
             py::arg("group"), py::arg("hide_history"), py::arg("corpora"));
}

}  // namespace draftd::bindings
