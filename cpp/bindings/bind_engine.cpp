#include "bind.h"

#include <pybind11/stl.h>

#include <array>
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

// The tails of one step as packed columns, ready for the wire.
struct Tails {
  py::bytes base, status, reason, kind, detail, node_end, tokens, parents, survival, source;
};

void require_ends(std::span<const std::uint32_t> ends, std::size_t values, const char* name) {
  std::uint32_t before = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    require(ends[row] >= before,
            std::string("column ") + name + ": row " + std::to_string(row) + " ends before it begins");
    before = ends[row];
  }
  require(before == values, std::string("column ") + name + " ends at " + std::to_string(before) + " of " +
                                std::to_string(values) + " values");
}

void require_fitting(const StepColumns& step) {
  const std::size_t rows = step.request.size();
  const auto of_rows = [&](std::size_t entries, const char* name) {
    require(entries == rows, std::string("column ") + name + " has " + std::to_string(entries) + " entries for " +
                                 std::to_string(rows) + " rows");
  };
  of_rows(step.epoch.size(), "epoch");
  of_rows(step.start.size(), "start");
  of_rows(step.token_end.size(), "token_end");
  of_rows(step.tail_base.size(), "tail_base");
  of_rows(step.verified.size(), "verified");
  of_rows(step.max_nodes.size(), "max_nodes");
  require_ends(step.token_end, step.tokens.size(), "token_end");
  if (!step.bitmap_end.empty()) of_rows(step.bitmap_end.size(), "bitmap_end");
  require_ends(step.bitmap_end, step.bitmap.size(), "bitmap_end");
  for (std::size_t row = 0; row < rows; ++row) {
    require(step.verified[row] >= Verified::kBitmap,
            "column verified: row " + std::to_string(row) + " has " + std::to_string(step.verified[row]));
  }
}

// The columns of a VerifyCommit, known to fit together. Holds the bytes they lie in.
class PyStepColumns {
 public:
  PyStepColumns(py::bytes request, py::bytes epoch, py::bytes start, py::bytes token_end, py::bytes tokens,
                py::bytes tail_base, py::bytes verified, py::bytes bitmap_end, py::bytes bitmap, py::bytes max_nodes)
      : held_{std::move(request), std::move(epoch),     std::move(start),    std::move(token_end),
              std::move(tokens),  std::move(tail_base), std::move(verified), std::move(bitmap_end),
              std::move(bitmap),  std::move(max_nodes)},
        columns_{column<std::uint32_t>(held_[0], "request"),
                 column<std::uint32_t>(held_[1], "epoch"),
                 column<std::uint32_t>(held_[2], "start"),
                 column<std::uint32_t>(held_[3], "token_end"),
                 column<Token>(held_[4], "tokens"),
                 column<std::uint32_t>(held_[5], "tail_base"),
                 column<std::int32_t>(held_[6], "verified"),
                 column<std::uint32_t>(held_[7], "bitmap_end"),
                 column<std::uint8_t>(held_[8], "bitmap"),
                 column<std::uint16_t>(held_[9], "max_nodes"),
                 0,
                 0.0} {
    require_fitting(columns_);
  }

  StepColumns with(std::uint32_t budget, double min_survival) const {
    StepColumns step = columns_;
    step.budget = budget;
    step.min_survival = min_survival;
    return step;
  }

 private:
  std::array<py::bytes, 10> held_;
  StepColumns columns_;
};

Tails step(Engine& engine, std::uint64_t verifier, double now, const PyStepColumns& columns, std::uint32_t budget,
           double min_survival) {
  thread_local TailColumns tails;
  {
    const py::gil_scoped_release release;
    engine.step(verifier, columns.with(budget, min_survival), now, tails);
  }
  return {packed(tails.base),     packed(tails.status),   packed(tails.reason), packed(tails.kind),
          packed(tails.detail),   packed(tails.node_end), packed(tails.tokens), packed(tails.parents),
          packed(tails.survival), packed(tails.source)};
}

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
  all["evicted_sessions"] = figures.evicted_sessions;
  all["forgotten_tokens"] = figures.forgotten_tokens;
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
  py::class_<Tails>(module, "Tails")
      .def_readonly("base", &Tails::base)
      .def_readonly("status", &Tails::status)
      .def_readonly("reason", &Tails::reason)
      .def_readonly("kind", &Tails::kind)
      .def_readonly("detail", &Tails::detail)
      .def_readonly("node_end", &Tails::node_end)
      .def_readonly("tokens", &Tails::tokens)
      .def_readonly("parents", &Tails::parents)
      .def_readonly("survival", &Tails::survival)
      .def_readonly("source", &Tails::source);

  py::class_<PyStepColumns>(module, "StepColumns")
      .def(py::init<py::bytes, py::bytes, py::bytes, py::bytes, py::bytes, py::bytes, py::bytes, py::bytes, py::bytes,
                    py::bytes>(),
           py::arg("request"), py::arg("epoch"), py::arg("start"), py::arg("token_end"), py::arg("tokens"),
           py::arg("tail_base"), py::arg("verified"), py::arg("bitmap_end"), py::arg("bitmap"), py::arg("max_nodes"));

  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Engine> engine(module, "Engine");
  engine
      .def(py::init([](double session_ttl, std::size_t memory_limit, std::size_t history_limit, std::uint32_t max_nodes,
                       bool indexing_thread, bool in_flight, bool learning, const py::bytes& priors) {
             return std::make_unique<Engine>(
                 EngineLimits{session_ttl, memory_limit, history_limit, max_nodes, in_flight, learning},
                 indexing_thread, bytes_of(priors));
           }),
           py::arg("session_ttl"), py::arg("memory_limit"), py::arg("history_limit"), py::arg("max_nodes"),
           py::arg("indexing_thread") = true, py::arg("in_flight") = true, py::arg("learning") = true,
           py::arg("priors") = py::bytes())
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
      .def("step", &step, py::arg("verifier"), py::arg("now"), py::arg("columns"), py::arg("budget"),
           py::arg("min_survival"))
      .def("expire", &Engine::expire, py::arg("now"), Unlocked())
      .def("ticket", &Engine::ticket)
      .def("indexed", &Engine::indexed, py::arg("ticket"))
      .def("wait_indexed", &Engine::wait_indexed, py::arg("ticket"), py::arg("timeout"), Unlocked())
      .def("fileno", &Engine::progress_fd)
      .def("index_slice", &Engine::index_slice, py::arg("max_tokens"), Unlocked())
      .def("stop_indexing", &Engine::stop_indexing, Unlocked())
      .def("statistics", &statistics);
  bind_histories(module, engine);
  bind_explain(module, engine);
  bind_learning(engine);
}

}  // namespace draftd::bindings
