#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "arrays.h"
#include "bind.h"
#include "draftd/engine.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

// The tails of one step as packed columns, ready for the wire.
struct Tails {
  py::bytes base, status, reason, kind, detail, allowed, accepted, node_end, tokens, parents, survival, source;
};

void require_fitting(const StepColumns& step) {
  const std::size_t rows = step.request.size();
  const auto of_rows = [&](std::size_t entries, const char* name) {
    require(entries == rows, [&] {
      return std::string("column ") + name + " has " + std::to_string(entries) + " entries for " +
             std::to_string(rows) + " rows";
    });
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
    require(step.verified[row] >= Verified::kBitmap, [&] {
      return "column verified: row " + std::to_string(row) + " has " + std::to_string(step.verified[row]);
    });
  }
}

void require_cost(const StepCost& cost) {
  require(!cost.tokens.empty(), "cost: a table without entries");
  require(cost.tokens.size() == cost.micros.size(), [&] {
    return "cost: " + std::to_string(cost.tokens.size()) + " tokens for " + std::to_string(cost.micros.size()) +
           " micros";
  });
  for (std::size_t i = 0; i < cost.tokens.size(); ++i) {
    const auto require_of_entry = [i](bool holds, const char* what) {
      require(holds, [&] { return "cost: entry " + std::to_string(i) + what; });
    };
    const std::uint32_t tokens = cost.tokens[i];
    const float micros = cost.micros[i];
    require_of_entry(tokens > (i == 0 ? 0 : cost.tokens[i - 1]), " has no more tokens than the one before");
    require_of_entry(std::isfinite(micros) && micros > 0.0F, " takes no time, or forever");
    require_of_entry(i == 0 || micros >= cost.micros[i - 1], " takes less time than the one before");
  }
  require(std::isfinite(cost.drafting_micros) && cost.drafting_micros >= 0.0,
          [&] { return "cost: drafting_micros is " + std::to_string(cost.drafting_micros); });
  for (std::size_t i = 1; i < cost.widths.size(); ++i) {
    require(cost.widths[i] > cost.widths[i - 1],
            [&] { return "widths: entry " + std::to_string(i) + " is not above the one before"; });
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

  const StepColumns& columns() const { return columns_; }

 private:
  std::array<py::bytes, 10> held_;
  StepColumns columns_;
};

// A StepCost, known to be one. Holds the bytes it lies in.
class PyStepCost {
 public:
  PyStepCost(py::bytes tokens, py::bytes micros, double drafting_micros, std::uint32_t other_tokens, py::bytes widths)
      : held_{std::move(tokens), std::move(micros), std::move(widths)},
        cost_{column<std::uint32_t>(held_[0], "tokens"), column<float>(held_[1], "micros"), drafting_micros,
              other_tokens, column<std::uint16_t>(held_[2], "widths")} {
    require_cost(cost_);
  }

  const StepCost& cost() const { return cost_; }

 private:
  std::array<py::bytes, 3> held_;
  StepCost cost_;
};

Tails packed_tails(const TailColumns& tails) {
  return {packed(tails.base),   packed(tails.status),  packed(tails.reason),   packed(tails.kind),
          packed(tails.detail), packed(tails.allowed), packed(tails.accepted), packed(tails.node_end),
          packed(tails.tokens), packed(tails.parents), packed(tails.survival), packed(tails.source)};
}

Tails step(Engine& engine, std::uint64_t verifier, double now, const PyStepColumns& columns, std::uint32_t budget,
           double min_survival, const PyStepCost* cost, std::optional<std::uint32_t> most_nodes) {
  thread_local TailColumns tails;
  {
    const py::gil_scoped_release release;
    StepColumns step = columns.columns();
    step.budget = budget;
    step.min_survival = min_survival;
    step.most_nodes = most_nodes;
    if (cost != nullptr) step.cost = cost->cost();
    engine.step(verifier, step, now, tails);
  }
  return packed_tails(tails);
}

// The part of an earlier answer that drafting once more starts from.
TailColumns answered(const Tails& tails, std::size_t rows) {
  const auto to = [rows](const auto& bytes, auto& into, const char* name) {
    const auto values = column<typename std::remove_reference_t<decltype(into)>::value_type>(bytes, name);
    into.assign(values.begin(), values.end());
    require(std::string_view(name) == "parents" || into.size() == rows, [&] {
      return "column " + std::string(name) + " has " + std::to_string(into.size()) + " entries for " +
             std::to_string(rows) + " rows";
    });
  };
  TailColumns columns;
  to(tails.base, columns.base, "base");
  to(tails.status, columns.status, "status");
  to(tails.reason, columns.reason, "reason");
  to(tails.detail, columns.detail, "detail");
  to(tails.allowed, columns.allowed, "allowed");
  to(tails.accepted, columns.accepted, "accepted");
  to(tails.node_end, columns.node_end, "node_end");
  to(tails.parents, columns.parents, "parents");
  return columns;
}

// Of a draft source: nodes [nodes], cut into rows by node_end. No parents: chains; no survival: none is stated.
std::vector<DraftedNode> drafted_nodes(std::span<const std::uint32_t> node_end, std::span<const Token> tokens,
                                       std::span<const std::int16_t> parents, std::span<const float> survival) {
  require(parents.empty() || parents.size() == tokens.size(), "drafted: columns tokens and parents differ in length");
  require(survival.empty() || survival.size() == tokens.size(),
          "drafted: columns tokens and survival differ in length");
  require_ends(node_end, tokens.size(), "drafted");
  require_ids(tokens);
  std::vector<DraftedNode> nodes;
  nodes.reserve(tokens.size());
  for (const std::uint32_t end : node_end) {
    for (const std::size_t first = nodes.size(); nodes.size() < end;) {
      const std::size_t i = nodes.size();
      const auto before = static_cast<std::int64_t>(i - first) - 1;
      const std::int64_t parent = parents.empty() ? before : parents[i];
      require(parent >= -1 && parent <= before && parent <= INT16_MAX,
              [&] { return "drafted: node " + std::to_string(i) + " has no parent before it"; });
      nodes.push_back(
          {tokens[i], static_cast<std::int16_t>(parent), survival.empty() ? DraftedNode::kUnstated : survival[i]});
    }
  }
  return nodes;
}

Tails redraft(Engine& engine, std::uint64_t verifier, const PyStepColumns& columns, const Tails& before,
              const py::bytes& node_end, const py::bytes& tokens, const py::bytes& parents, const py::bytes& survival,
              std::uint32_t budget, double min_survival, const PyStepCost* cost) {
  const StepColumns& step = columns.columns();
  TailColumns tails = answered(before, step.request.size());
  const auto ends = column<std::uint32_t>(node_end, "drafted");
  require(ends.size() == step.request.size(), "drafted: not one row for each of the step");
  const std::vector<DraftedNode> nodes =
      drafted_nodes(ends, column<Token>(tokens, "tokens"), column<std::int16_t>(parents, "parents"),
                    column<float>(survival, "survival"));
  {
    const py::gil_scoped_release release;
    engine.redraft(verifier, step.request, step.epoch, {ends, nodes}, budget, min_survival,
                   cost == nullptr ? std::optional<StepCost>() : cost->cost(), tails);
  }
  return packed_tails(tails);
}

std::pair<py::bytes, py::bytes> texts(Engine& engine, std::uint64_t verifier, const py::bytes& request,
                                      const py::bytes& epoch, const py::bytes& start) {
  const auto requests = column<std::uint32_t>(request, "request");
  const auto epochs = column<std::uint32_t>(epoch, "epoch");
  const auto starts = column<std::uint32_t>(start, "start");
  require(requests.size() == epochs.size() && requests.size() == starts.size(),
          "columns request, epoch and start differ in length");
  std::vector<std::uint32_t> token_end;
  std::vector<Token> tokens;
  {
    const py::gil_scoped_release release;
    engine.texts(verifier, requests, epochs, starts, token_end, tokens);
  }
  return {packed(token_end), packed(tokens)};
}

}  // namespace

void bind_step(py::module_& module, py::class_<Engine>& engine) {
  py::class_<Tails>(module, "Tails")
      .def_readonly("base", &Tails::base)
      .def_readonly("status", &Tails::status)
      .def_readonly("reason", &Tails::reason)
      .def_readonly("kind", &Tails::kind)
      .def_readonly("detail", &Tails::detail)
      .def_readonly("allowed", &Tails::allowed)
      .def_readonly("accepted", &Tails::accepted)
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

  py::class_<PyStepCost>(module, "StepCost")
      .def(py::init<py::bytes, py::bytes, double, std::uint32_t, py::bytes>(), py::arg("tokens"), py::arg("micros"),
           py::arg("drafting_micros") = 0.0, py::arg("other_tokens") = 0, py::arg("widths") = py::bytes());

  engine.def("step", &step, py::arg("verifier"), py::arg("now"), py::arg("columns"), py::arg("budget"),
             py::arg("min_survival"), py::arg("cost") = nullptr, py::arg("most_nodes") = std::nullopt);
  engine.def("redraft", &redraft, py::arg("verifier"), py::arg("columns"), py::arg("tails"), py::arg("node_end"),
             py::arg("tokens"), py::arg("parents"), py::arg("survival"), py::arg("budget"), py::arg("min_survival"),
             py::arg("cost") = nullptr);
  engine.def("texts", &texts, py::arg("verifier"), py::arg("request"), py::arg("epoch"), py::arg("start"));
}

}  // namespace draftd::bindings
