#include <algorithm>
#include <array>

#include "draft/evidence.h"
#include "draft/frontier.h"
#include "draft/ppm.h"
#include "draftd/drafting.h"

namespace draftd {
namespace {

// No continuation is certain: keeps deep nodes below their ancestors.
constexpr double kMostCertain = 0.999;
// The last node worth taking into a tree of n is about as likely as 1 / (3 n).
// Beyond a node's longest context, evidence that can't lift a candidate that
// far is not looked at: half the work, and, since short contexts mostly blur,
// 0.2 % more emitted tokens.
double worthwhile(std::uint32_t max_nodes) { return 1.0 / (3.0 * max_nodes); }

// One tree while it grows. An expansion is split into stages, so that a batch
// does one stage for all requests before the next and cache misses overlap.
struct Growth {
  const DraftWish* wish;
  Frontier frontier;
  std::vector<DraftNode> nodes;
  std::vector<Cursor> cursors;  // of the root and of every node, one per source
  double survival;              // of the node being expanded
  bool expanding;
  bool cut_by_threshold;

  void begin(const DraftWish& wanted);
  // Stage 1: take the best proposal into the tree and find its cursors.
  void take();
  // Stage 2: propose its continuations.
  void expand(double min_survival);

  bool done() const { return nodes.size() == wish->max_nodes || frontier.empty(); }
  std::span<Cursor> cursors_of(std::size_t node) {
    return {cursors.data() + node * wish->sources.size(), wish->sources.size()};
  }
};

void Growth::begin(const DraftWish& wanted) {
  wish = &wanted;
  frontier.reset(wanted.chain ? std::min(wanted.max_nodes, 1U) : wanted.max_nodes);
  nodes.clear();
  cursors.resize((wanted.max_nodes + 1) * wanted.sources.size());
  for (std::size_t i = 0; i < wanted.sources.size(); ++i) {
    cursors[i] = wanted.sources[i].cursor;
    wanted.sources[i].index->prefetch_edges(cursors[i].state);
  }
  survival = 1.0;
  expanding = wanted.max_nodes > 0;
  cut_by_threshold = false;
}

void Growth::take() {
  if (wish->chain) {
    const Proposal only = frontier.best();
    frontier.reset(1);
    nodes.push_back({only.token, only.parent, only.source, static_cast<float>(only.survival)});
    survival = only.survival;
  } else {
    const Proposal best = frontier.pop();
    nodes.push_back({best.token, best.parent, best.source, static_cast<float>(best.survival)});
    survival = best.survival;
  }
  const DraftNode& node = nodes.back();
  expanding = nodes.size() < wish->max_nodes &&
              std::find(wish->stop_ids.begin(), wish->stop_ids.end(), node.token) == wish->stop_ids.end();
  if (!expanding) return;
  const std::span<const Cursor> above = cursors_of(static_cast<std::size_t>(node.parent + 1));
  const std::span<Cursor> here = cursors_of(nodes.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    const Index& index = *wish->sources[i].index;
    here[i] = index.advance(above[i], node.token);
    index.prefetch_edges(here[i].state);
  }
}

void Growth::expand(double min_survival) {
  if (!expanding) return;
  const double enough = worthwhile(wish->max_nodes);
  Blend blend;
  Contexts contexts(wish->sources, cursors_of(nodes.size()));
  Level level;
  for (std::size_t i = 0; i < Blend::kLevels; ++i) {
    if (i > 0 && survival * blend.unclaimed() < enough) break;
    if (!contexts.next(level)) break;
    blend.add(level);
  }
  if (wish->fill != nullptr && survival * blend.unclaimed() >= enough) blend.fill(*wish->fill);

  const auto parent = static_cast<std::int16_t>(static_cast<int>(nodes.size()) - 1);
  for (std::size_t i = 0; i < blend.size(); ++i) {
    if (blend.token(i) >= wish->vocabulary) continue;
    const double reached = survival * std::min(blend.probability(i), kMostCertain);
    if (reached >= min_survival) {
      frontier.push({reached, blend.token(i), parent, blend.source(i)});
    } else {
      cut_by_threshold = true;
    }
  }
}

}  // namespace

struct Drafter::Storage {
  std::vector<Growth> growths;
  std::vector<std::uint32_t> growing;  // numbers of the trees that can still take a node
};

Drafter::Drafter() : storage_(std::make_unique<Storage>()) {}
Drafter::~Drafter() = default;

void Drafter::draft(std::span<const DraftWish> wishes, std::uint32_t budget, double min_survival) {
  std::vector<Growth>& growths = storage_->growths;
  std::vector<std::uint32_t>& growing = storage_->growing;
  if (growths.size() < wishes.size()) growths.resize(wishes.size());

  std::uint64_t wanted = 0;
  growing.clear();
  for (std::uint32_t i = 0; i < wishes.size(); ++i) {
    growths[i].begin(wishes[i]);
    wanted += wishes[i].max_nodes;
  }
  for (std::uint32_t i = 0; i < wishes.size(); ++i) {
    growths[i].expand(min_survival);
    if (!growths[i].done()) growing.push_back(i);
  }

  if (budget >= wanted) {
    while (!growing.empty()) {
      for (const std::uint32_t i : growing) growths[i].take();
      for (const std::uint32_t i : growing) growths[i].expand(min_survival);
      std::erase_if(growing, [&](std::uint32_t i) { return growths[i].done(); });
    }
    return;
  }

  // Nodes are scarce: the likeliest of the whole batch is taken, ties to the
  // earlier request. Only what is taken is expanded.
  const auto less_likely = [&](std::uint32_t a, std::uint32_t b) {
    const double of_a = growths[a].frontier.best().survival;
    const double of_b = growths[b].frontier.best().survival;
    return of_a != of_b ? of_a < of_b : a > b;
  };
  std::make_heap(growing.begin(), growing.end(), less_likely);
  for (; budget > 0 && !growing.empty(); --budget) {
    std::pop_heap(growing.begin(), growing.end(), less_likely);
    Growth& growth = growths[growing.back()];
    growth.take();
    growth.expand(min_survival);
    if (growth.done()) {
      growing.pop_back();
    } else {
      std::push_heap(growing.begin(), growing.end(), less_likely);
    }
  }
}

std::span<const DraftNode> Drafter::tree(std::size_t i) const { return storage_->growths[i].nodes; }

Reason Drafter::empty_because(std::size_t i) const {
  const Growth& growth = storage_->growths[i];
  if (!growth.frontier.empty()) return Reason::kBudgetSpent;
  return growth.cut_by_threshold ? Reason::kBelowThreshold : Reason::kNoMatch;
}

}  // namespace draftd
