#include "draftd/drafting.h"

#include <algorithm>
#include <deque>

#include "draft/best_count.h"
#include "draft/growth.h"
#include "support/crew.h"

namespace draftd {
namespace {

// Where steps have a cost, nodes below are not drafted: a table that is flat, or
// was learned too flat, must not fill steps with what is hardly ever accepted.
// Of trees of 64 nodes it leaves 60 %, which emit 99 % of the tokens; 0.01 leaves a
// quarter and 94 %, which costs a small batch, whose nodes are free, 8 % of its throughput.
constexpr double kLeastSurvival = 0.002;
// Requests of one part of a batch: fewer, and their cache misses overlap less, or a
// helper takes longer to wake than to do it.
constexpr std::uint32_t kPart = 16;

// Neighbours in a batch, whose trees one thread plants, and, where nothing is shared out over the batch, grows.
struct Part {
  NearestSearch search;
  Presets presets;
  std::vector<std::uint32_t> growing;  // numbers of its trees that can still take a node
};

void take_one_each(std::vector<Growth>& growths, std::vector<std::uint32_t>& growing) {
  for (const std::uint32_t i : growing) growths[i].take();
  for (const std::uint32_t i : growing) growths[i].expand();
  std::erase_if(growing, [&](std::uint32_t i) { return growths[i].done(); });
}

}  // namespace

struct Drafter::Storage {
  explicit Storage(Crew* lent) : crew(lent) {}

  Crew* crew;  // nullptr: the caller works alone
  std::vector<Growth> growths;
  std::deque<Part> parts;
  std::vector<std::uint32_t> growing;    // numbers of the trees that can still take a node
  std::vector<std::uint32_t> row_nodes;  // the most that each tree may have
  std::vector<std::uint32_t> taken;      // trees that took a node, in that order
  std::vector<Stop> stops;
  Reason left_out = Reason::kNotEmpty;  // why trees have no more nodes than they have

  // Plants all trees: at the end each knows the best node it could take. `whole`: then takes all it may.
  void begin(std::span<const DraftWish> wishes, double min_survival, bool whole);
  template <typename Wanted>
  void take_likeliest(const Wanted& wanted);
  void take_what_pays(const StepCost& cost, std::uint32_t budget);
  void take_widths_that_pay(const StepCost& cost, std::uint32_t budget);

 private:
  // Of the wishes from `first` to before `end`.
  void plant(std::span<const DraftWish> wishes, std::uint32_t first, std::uint32_t end, double min_survival,
             Part& part);
};

void Drafter::Storage::begin(std::span<const DraftWish> wishes, double min_survival, bool whole) {
  if (growths.size() < wishes.size()) growths.resize(wishes.size());
  const auto all = static_cast<std::uint32_t>(wishes.size());
  const std::uint32_t count = crew == nullptr ? 1 : std::max(all / kPart, 1U);
  if (parts.size() < count) parts.resize(count);
  const auto grow = [&](std::uint32_t number) {
    Part& part = parts[number];
    plant(wishes, all * number / count, all * (number + 1) / count, min_survival, part);
    while (whole && !part.growing.empty()) take_one_each(growths, part.growing);
  };
  if (crew == nullptr) {
    grow(0);
  } else {
    crew->run(count, grow);
  }
  growing.clear();
  for (std::uint32_t number = 0; number < count; ++number) {
    growing.insert(growing.end(), parts[number].growing.begin(), parts[number].growing.end());
  }
}

void Drafter::Storage::plant(std::span<const DraftWish> wishes, std::uint32_t first, std::uint32_t end,
                             double min_survival, Part& part) {
  part.growing.clear();
  part.search.clear();
  for (std::uint32_t i = first; i < end; ++i) growths[i].begin(wishes[i], min_survival, part.search);
  part.search.run();
  for (std::uint32_t i = first; i < end; ++i) {
    growths[i].stand_at_root();
    if (wishes[i].policy.preset == Preset::kLearned) {
      growths[i].expand();
    } else {
      growths[i].propose(part.presets);
    }
    if (!growths[i].done()) part.growing.push_back(i);
  }
}

// The likeliest node of the whole batch, ties to the earlier request, for as long
// as one of that survival is wanted. Only what is taken is expanded.
template <typename Wanted>
void Drafter::Storage::take_likeliest(const Wanted& wanted) {
  const auto less_likely = [&](std::uint32_t a, std::uint32_t b) {
    const double of_a = growths[a].best();
    const double of_b = growths[b].best();
    return of_a != of_b ? of_a < of_b : a > b;
  };
  taken.clear();
  std::make_heap(growing.begin(), growing.end(), less_likely);
  while (!growing.empty() && wanted(growths[growing.front()].best())) {
    std::pop_heap(growing.begin(), growing.end(), less_likely);
    Growth& growth = growths[growing.back()];
    taken.push_back(growing.back());
    growth.take();
    growth.expand();
    if (growth.done()) {
      growing.pop_back();
    } else {
      std::push_heap(growing.begin(), growing.end(), less_likely);
    }
  }
}

// A tree's nodes are in the order in which they were taken: what is too much is at its end.
void Drafter::Storage::take_what_pays(const StepCost& cost, std::uint32_t budget) {
  find_stops(cost, budget, stops);
  BestCount best(cost, stops);
  take_likeliest([&](double survival) {
    if (survival < kLeastSurvival || !best.may_gain(survival)) return false;
    best.take(survival);
    return true;
  });
  for (; taken.size() > best.count(); taken.pop_back()) {
    Growth& growth = growths[taken.back()];
    growth.keep(growth.tree().size() - 1);
  }
  left_out = best.count() == budget ? Reason::kBudgetSpent : Reason::kNotWorthIt;
}

// As above, but what is taken is one node of every tree.
void Drafter::Storage::take_widths_that_pay(const StepCost& cost, std::uint32_t budget) {
  find_width_stops(cost, row_nodes, budget, stops);
  BestCount best(cost, stops);
  while (true) {
    std::erase_if(growing, [&](std::uint32_t i) { return growths[i].best() < kLeastSurvival; });
    double survival = 0.0;
    for (const std::uint32_t i : growing) survival += growths[i].best();
    if (growing.empty() || !best.may_gain(survival)) break;
    best.take(survival);
    take_one_each(growths, growing);
  }
  for (std::size_t i = 0; i < row_nodes.size(); ++i) growths[i].keep(best.count());
  left_out = Reason::kNotWorthIt;
}

Drafter::Drafter(Crew* crew) : storage_(std::make_unique<Storage>(crew)) {}
Drafter::~Drafter() = default;

void Drafter::draft(std::span<const DraftWish> wishes, std::uint32_t budget, double min_survival,
                    const StepCost* cost) {
  Storage& s = *storage_;
  s.row_nodes.clear();
  std::uint64_t wanted = 0;
  for (const DraftWish& wish : wishes) {
    s.row_nodes.push_back(wish.max_nodes);
    wanted += wish.max_nodes;
  }
  const bool whole = cost == nullptr && budget >= wanted;
  s.begin(wishes, min_survival, whole);
  if (cost != nullptr && !cost->widths.empty()) {
    s.take_widths_that_pay(*cost, budget);
  } else if (cost != nullptr) {
    s.take_what_pays(*cost, budget);
  } else {
    s.left_out = Reason::kBudgetSpent;
    s.take_likeliest([&](double) { return budget-- > 0; });
  }
}

Lesson& Drafter::lesson(std::size_t i) { return storage_->growths[i].lesson(); }
std::span<const DraftNode> Drafter::tree(std::size_t i) const { return storage_->growths[i].tree(); }

Reason Drafter::empty_because(std::size_t i) const {
  const Growth& growth = storage_->growths[i];
  if (growth.left_out()) return storage_->left_out;
  return growth.cut_by_threshold() ? Reason::kBelowThreshold : Reason::kNoMatch;
}

}  // namespace draftd
