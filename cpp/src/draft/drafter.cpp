#include <algorithm>
#include <array>

#include "draft/candidates.h"
#include "draft/evidence.h"
#include "draft/frontier.h"
#include "draft/presets/presets.h"
#include "draftd/drafting.h"

namespace draftd {
namespace {

// No continuation is certain: keeps deep nodes below their ancestors.
constexpr double kMostCertain = 0.999;
// Where a quarter of what the contexts leave to unknown tokens would not be among
// the nodes that the tree still has room for, no more evidence is looked at: half
// the work, and, since short contexts mostly blur, hardly fewer emitted tokens.
constexpr double kLikeliestShare = 0.25;

// One tree while it grows. An expansion is split into stages, so that a batch
// does one stage for all requests before the next and cache misses overlap.
class Growth {
 public:
  void begin(const DraftWish& wanted, double min_survival, NearestSearch& search);
  // After the search: what the root is expanded from.
  void stand_at_root();
  // Stage 1: take the best proposal into the tree and find its cursors.
  void take();
  // Stage 2: propose its continuations.
  void expand();
  // Instead of the first expand(): propose the whole tree that a preset draws up.
  void propose(Presets& presets);

  bool done() const { return nodes_.size() == wish_->max_nodes || frontier_.empty(); }
  const Frontier& frontier() const { return frontier_; }
  std::span<const DraftNode> tree() const { return nodes_; }
  bool cut_by_threshold() const { return cut_by_threshold_; }
  Lesson& lesson() { return lesson_; }
  // Of the next node.
  double best() const { return best_; }

 private:
  // Of a token, where it has any, and who knows them.
  struct Followers {
    const RecentPairs::Followers* found;
    Source kind;
  };

  bool learned() const { return wish_->policy.preset == Preset::kLearned; }
  // What followed the token at which the tree is expanded next.
  void look_up_pairs(Token last);
  // Gathers the continuations of the node last taken.
  void gather(Candidates& candidates);
  void look_ahead();
  // Cursors of the root, 0, or of a node, its number plus one.
  std::span<Cursor> live_cursors(std::size_t node) {
    return {live_cursors_.data() + node * wish_->live.size(), wish_->live.size()};
  }
  std::span<Agreeing> agreeing(std::size_t node) {
    return {agreeing_.data() + node * wish_->sealed.size(), wish_->sealed.size()};
  }

  const DraftWish* wish_;
  std::uint32_t breadth_;  // most children of one node
  double min_survival_;
  Frontier frontier_;
  Frontier siblings_;  // candidates of one node that has more than `breadth_`
  std::vector<DraftNode> nodes_;
  std::vector<std::uint32_t> depths_;   // of the root and the nodes
  std::vector<Cursor> live_cursors_;    // of the root and the nodes, one for each live source
  std::vector<SealedText> texts_;       // one for each sealed source
  std::vector<Agreeing> agreeing_;      // of the root and the nodes, one for each sealed source
  std::array<Followers, 2> followers_;  // of its last token: of the request, of the history
  Lesson lesson_;
  double raw_;   // survival of the node being expanded, not corrected
  double best_;  // of the likeliest node that can be taken next, corrected
  bool expanding_;
  bool cut_by_threshold_;
};

void Growth::begin(const DraftWish& wanted, double min_survival, NearestSearch& search) {
  wish_ = &wanted;
  breadth_ = wanted.chain ? 1 : wanted.policy.max_breadth;
  min_survival_ = std::max(min_survival, wanted.policy.min_survival);
  frontier_.reset(wanted.max_nodes);
  nodes_.clear();
  depths_.assign(1, 0);
  live_cursors_.resize((wanted.max_nodes + 1) * wanted.live.size());
  for (std::size_t i = 0; i < wanted.live.size(); ++i) {
    live_cursors_[i] = wanted.live[i].cursor;
    wanted.live[i].index->prefetch_edges(live_cursors_[i].state);
  }
  agreeing_.resize((wanted.max_nodes + 1) * wanted.sealed.size());
  if (texts_.size() < wanted.sealed.size()) texts_.resize(wanted.sealed.size());
  for (std::size_t i = 0; i < wanted.sealed.size(); ++i) {
    search.add(*wanted.sealed[i].segments, wanted.text, texts_[i].reset());
  }
  followers_ = {};
  if (!wanted.text.empty()) look_up_pairs(wanted.text.back());
  lesson_.clear();
  raw_ = best_ = 1.0;
  expanding_ = wanted.max_nodes > 0;
  cut_by_threshold_ = false;
}

void Growth::stand_at_root() {
  for (std::size_t i = 0; i < wish_->sealed.size(); ++i) agreeing(0)[i] = texts_[i].all();
}

void Growth::take() {
  const Proposal taken = frontier_.pop();
  nodes_.push_back({taken.token, taken.parent, taken.source, static_cast<float>(best_)});
  raw_ = taken.survival;
  const auto above = static_cast<std::size_t>(taken.parent + 1);
  const std::size_t here = nodes_.size();
  depths_.push_back(depths_[above] + 1);
  if (!learned()) {
    look_ahead();
    return;
  }
  lesson_.raw.push_back(raw_);
  expanding_ = nodes_.size() < wish_->max_nodes && depths_[here] < wish_->policy.max_depth &&
               std::find(wish_->stop_ids.begin(), wish_->stop_ids.end(), taken.token) == wish_->stop_ids.end();
  if (!expanding_) return;
  look_up_pairs(taken.token);
  for (std::size_t i = 0; i < wish_->live.size(); ++i) {
    const Index& index = *wish_->live[i].index;
    live_cursors(here)[i] = index.advance(live_cursors(above)[i], taken.token);
    index.prefetch_edges(live_cursors(here)[i].state);
  }
  for (std::size_t i = 0; i < wish_->sealed.size(); ++i) {
    const Agreeing before = agreeing(above)[i];
    const SealedText::Followers& followers = texts_[i].followers(depths_[above], before);
    agreeing(here)[i] = SealedText::followed_by(static_cast<std::uint32_t>(taken.token) + 1, followers, before);
  }
}

void Growth::expand() {
  if (!learned()) return;
  Candidates candidates;
  if (expanding_) gather(candidates);
  const std::span<const Candidate> described = candidates.described();
  lesson_.candidates.insert(lesson_.candidates.end(), described.begin(), described.end());
  lesson_.end.push_back(static_cast<std::uint32_t>(lesson_.candidates.size()));

  std::array<float, Candidates::kMost> probabilities{};
  wish_->model->probabilities(described, probabilities);
  double sum = 0.0;
  for (std::size_t i = 0; i < described.size(); ++i) sum += static_cast<double>(probabilities[i]);
  const double scale = sum > 1.0 ? 1.0 / sum : 1.0;
  const auto parent = static_cast<std::int16_t>(static_cast<int>(nodes_.size()) - 1);
  const bool too_many = described.size() > breadth_;
  if (too_many) siblings_.reset(breadth_);
  Frontier& proposed = too_many ? siblings_ : frontier_;
  for (std::size_t i = 0; i < described.size(); ++i) {
    if (described[i].token >= wish_->vocabulary) continue;
    const double probability = std::min(static_cast<double>(probabilities[i]) * scale, kMostCertain);
    proposed.push({raw_ * probability, described[i].token, parent, candidates.source(i)});
  }
  while (too_many && !siblings_.empty()) frontier_.push(siblings_.pop());
  look_ahead();
}

void Growth::look_up_pairs(Token last) {
  const auto look_up = [&](const PairsSource& source) -> Followers {
    const RecentPairs::Followers* const found = source.pairs->of(last);
    if (found != nullptr) __builtin_prefetch(found);
    return {found, source.kind};
  };
  followers_ = {};
  if (wish_->own_pairs != nullptr) followers_[0] = look_up({wish_->own_pairs, Source::kOwnText});
  for (const PairsSource& source : wish_->history_pairs) {
    followers_[1] = look_up(source);
    if (followers_[1].found != nullptr) break;
  }
}

void Growth::gather(Candidates& candidates) {
  const std::size_t here = nodes_.size();
  const double least = frontier_.least();
  // Whether what the contexts leave could still become a node of the tree.
  const auto open = [&] { return raw_ * candidates.unclaimed() * kLikeliestShare >= least; };
  Contexts contexts(*wish_, live_cursors(here), texts_, agreeing(here), depths_[here]);
  Level level;
  for (std::size_t i = 0; i < Candidates::kLevels && (i == 0 || open()) && contexts.next(level); ++i) {
    candidates.add(level);
  }
  if (!open()) return;
  for (std::uint32_t slot = 0; slot < followers_.size(); ++slot) {
    const auto& [found, kind] = followers_[slot];
    if (found != nullptr) candidates.add_pairs(slot, kind, *found);
  }
  candidates.add(wish_->fill);
}

// What comes next, and whether it may.
void Growth::look_ahead() {
  if (frontier_.empty()) return;
  const double raw = frontier_.best().survival;
  // Rounded, a corrected survival may rise by the last bit.
  best_ = std::min(best_, learned() ? wish_->model->survival(raw) : raw);
  if (best_ >= min_survival_) return;
  cut_by_threshold_ = true;
  frontier_.reset(0);
}

// A preset's node competes for the batch's nodes by its survival, as any other.
void Growth::propose(Presets& presets) {
  Plan& plan = presets.draw_up(*wish_, {texts_.data(), wish_->sealed.size()}, min_survival_);
  for (const Proposal& node : plan.by_survival()) frontier_.push(node);
  cut_by_threshold_ = plan.cut_by_threshold();
  look_ahead();
}

}  // namespace

struct Drafter::Storage {
  std::vector<Growth> growths;
  NearestSearch search;
  Presets presets;
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
  storage_->search.clear();
  for (std::uint32_t i = 0; i < wishes.size(); ++i) {
    growths[i].begin(wishes[i], min_survival, storage_->search);
    wanted += wishes[i].max_nodes;
  }
  storage_->search.run();
  for (std::uint32_t i = 0; i < wishes.size(); ++i) {
    growths[i].stand_at_root();
    if (wishes[i].policy.preset == Preset::kLearned) {
      growths[i].expand();
    } else {
      growths[i].propose(storage_->presets);
    }
    if (!growths[i].done()) growing.push_back(i);
  }

  if (budget >= wanted) {
    while (!growing.empty()) {
      for (const std::uint32_t i : growing) growths[i].take();
      for (const std::uint32_t i : growing) growths[i].expand();
      std::erase_if(growing, [&](std::uint32_t i) { return growths[i].done(); });
    }
    return;
  }

  // Nodes are scarce: the likeliest of the whole batch is taken, ties to the
  // earlier request. Only what is taken is expanded.
  const auto less_likely = [&](std::uint32_t a, std::uint32_t b) {
    const double of_a = growths[a].best();
    const double of_b = growths[b].best();
    return of_a != of_b ? of_a < of_b : a > b;
  };
  std::make_heap(growing.begin(), growing.end(), less_likely);
  for (; budget > 0 && !growing.empty(); --budget) {
    std::pop_heap(growing.begin(), growing.end(), less_likely);
    Growth& growth = growths[growing.back()];
    growth.take();
    growth.expand();
    if (growth.done()) {
      growing.pop_back();
    } else {
      std::push_heap(growing.begin(), growing.end(), less_likely);
    }
  }
}

Lesson& Drafter::lesson(std::size_t i) { return storage_->growths[i].lesson(); }
std::span<const DraftNode> Drafter::tree(std::size_t i) const { return storage_->growths[i].tree(); }

Reason Drafter::empty_because(std::size_t i) const {
  const Growth& growth = storage_->growths[i];
  if (!growth.frontier().empty()) return Reason::kBudgetSpent;
  return growth.cut_by_threshold() ? Reason::kBelowThreshold : Reason::kNoMatch;
}

}  // namespace draftd
