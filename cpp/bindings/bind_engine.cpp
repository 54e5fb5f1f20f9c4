#include "bind.h"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "draftd/engine.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

std::pair<int, std::uint32_t> open(Engine& self, std::uint64_t verifier, std::uint32_t request, std::uint32_t epoch,
                                   std::uint32_t name_space, const std::string& label, std::uint32_t vocabulary_size,
                                   const py::bytes& prompt, const py::bytes& output, const py::bytes& stop_ids,
                                   std::optional<std::uint32_t> max_new_tokens, bool chain, std::uint32_t max_nodes,
                                   const DraftPolicy& policy, int share, std::string group, bool hide_history,
                                   std::optional<std::vector<std::uint32_t>> corpora, double now) {
  const auto stops = column<Token>(stop_ids, "stop_ids");
  const auto given = column<Token>(prompt, "prompt");
  const auto produced = column<Token>(output, "output");
  OpenRequest opened{verifier, request, epoch, name_space, label, {}, given, produced};
  RequestOptions& options = opened.options;
  if (vocabulary_size != 0 && vocabulary_size < INT32_MAX) options.vocabulary = static_cast<Token>(vocabulary_size);
  options.stop_ids.assign(stops.begin(), stops.end());
  options.max_new_tokens = max_new_tokens;
  options.chain = chain;
  if (max_nodes != 0) options.max_nodes = max_nodes;
  options.policy = policy;
  options.share = static_cast<Share>(share);
  options.group = std::move(group);
  options.reads_history = !hide_history;
  options.corpora = std::move(corpora);
  const py::gil_scoped_release release;
  const auto [status, position] = self.open(opened, now);
  return {static_cast<int>(status), position};
}

py::bytes close(Engine& self, std::uint64_t verifier, const py::bytes& request, const py::bytes& epoch, double now,
                std::int64_t time) {
  const auto requests = column<std::uint32_t>(request, "request");
  const auto epochs = column<std::uint32_t>(epoch, "epoch");
  require(requests.size() == epochs.size(), "columns request and epoch differ in length");
  std::vector<std::uint8_t> statuses;
  {
    const py::gil_scoped_release release;
    for (std::size_t row = 0; row < requests.size(); ++row) {
      statuses.push_back(static_cast<std::uint8_t>(self.close(verifier, requests[row], epochs[row], now, time)));
    }
  }
  return packed(statuses);
}

py::dict statistics(Engine& self) {
  EngineStatistics figures;
  {
    const py::gil_scoped_release release;
    figures = self.statistics();
  }
  const auto size = [](const EngineStatistics::Size& of) {
    py::dict entry;
    entry["tokens"] = of.tokens;
    entry["bytes"] = of.bytes;
    return entry;
  };
  py::dict index;
  index["own"] = size(figures.own);
  index["history"] = size(figures.history);
  index["group"] = size(figures.group);
  index["corpus"] = size(figures.corpus);
  index["in_flight"] = size(figures.in_flight);
  index["kept"] = size(figures.kept);
  py::dict all;
  all["steps"] = figures.acceptance.steps;
  all["drafts"] = figures.acceptance.drafts;
  all["covered_steps"] = figures.acceptance.covered;
  all["verified_per_position"] = figures.acceptance.verified;
  all["accepted_per_position"] = figures.acceptance.accepted;
  all["delivered_tails"] = figures.delivered_tails;
  all["delivered_per_position"] = figures.delivered;
  all["stale_tails"] = figures.stale_tails;
  all["ignored_closes"] = figures.ignored_closes;
  all["accompanied_steps"] = figures.accompanied_steps;
  all["evicted_sessions"] = figures.evicted_sessions;
  all["forgotten_tokens"] = figures.forgotten_tokens;
  all["taken_over_tokens"] = figures.taken_over_tokens;
  all["learned_bytes"] = figures.learned_bytes;
  all["acceptance_of_requests"] = figures.acceptance_of_requests;
  all["requests_measured"] = figures.requests_measured;
  all["empty_tails"] = figures.empty_tails;
  all["row_errors"] = figures.row_errors;
  all["sessions"] = figures.sessions;
  all["verifiers"] = figures.verifiers;
  all["index"] = index;
  return all;
}

}  // namespace

void bind_engine(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Engine> engine(module, "Engine");
  engine
      .def(py::init([](double session_ttl, std::size_t memory_limit, std::size_t history_limit, std::uint32_t max_nodes,
                       bool indexing_thread, bool in_flight, bool learning, const py::bytes& priors,
                       std::uint32_t rest_after, std::uint32_t rest_steps, std::uint32_t long_run_tokens,
                       double long_run_factor, unsigned threads) {
             const PaceRules pace{{rest_after, rest_steps}, long_run_tokens, long_run_factor};
             return std::make_unique<Engine>(
                 EngineLimits{session_ttl, memory_limit, history_limit, max_nodes, in_flight, learning, pace, threads},
                 indexing_thread, bytes_of(priors));
           }),
           py::arg("session_ttl"), py::arg("memory_limit"), py::arg("history_limit"), py::arg("max_nodes"),
           py::arg("indexing_thread") = true, py::arg("in_flight") = true, py::arg("learning") = true,
           py::arg("priors") = py::bytes(), py::arg("rest_after") = 0, py::arg("rest_steps") = 0,
           py::arg("long_run_tokens") = 0, py::arg("long_run_factor") = 1.0, py::arg("threads") = 1)
      .def("create_namespace", &Engine::create_namespace, Unlocked())
      .def(
          "publish_corpus",
          [](Engine& self, std::uint32_t name_space, std::uint32_t corpus,
             const std::vector<std::shared_ptr<Segment>>& segments) {
            self.publish_corpus(name_space, corpus, SegmentSet(segments.begin(), segments.end()));
          },
          py::arg("namespace"), py::arg("corpus"), py::arg("segments"), Unlocked())
      .def("withdraw_corpus", &Engine::withdraw_corpus, py::arg("namespace"), py::arg("corpus"), Unlocked())
      .def("open", &open, py::kw_only(), py::arg("verifier"), py::arg("request"), py::arg("epoch"),
           py::arg("namespace"), py::arg("label"), py::arg("vocabulary_size"), py::arg("prompt"), py::arg("output"),
           py::arg("stop_ids"), py::arg("max_new_tokens"), py::arg("chain"), py::arg("max_nodes"),
           py::arg("policy") = DraftPolicy(), py::arg("share"), py::arg("group"), py::arg("hide_history"),
           py::arg("corpora"), py::arg("now"))
      .def("close", &close, py::arg("verifier"), py::arg("request"), py::arg("epoch"), py::arg("now"), py::arg("time"))
      .def("expire", &Engine::expire, py::arg("now"), Unlocked())
      .def("ticket", &Engine::ticket)
      .def("indexed", &Engine::indexed, py::arg("ticket"))
      .def("wait_indexed", &Engine::wait_indexed, py::arg("ticket"), py::arg("timeout"), Unlocked())
      .def("fileno", &Engine::progress_fd)
      .def("index_slice", &Engine::index_slice, py::arg("max_tokens"), Unlocked())
      .def("stop_indexing", &Engine::stop_indexing, Unlocked())
      .def("statistics", &statistics);
  bind_step(module, engine);
  bind_histories(module, engine);
  bind_explain(module, engine);
  bind_tapes(module, engine);
  bind_learning(engine);
}

}  // namespace draftd::bindings
