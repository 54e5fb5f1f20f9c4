#include "draft/growth.h"

#include <algorithm>
#include <array>

namespace draftd {
namespace {

// No continuation is certain: keeps deep nodes below their ancestors.
constexpr double kMostCertain = 0.999;
// Where a quarter of what the contexts leave to unknown tokens would not be among
// the nodes that the tree still has room for, no more evidence is looked at: half
// the work, and, since short contexts mostly blur, hardly fewer emitted tokens.
constexpr double kLikeliestShare = 0.25;

// Where a node is in a draft source's tree.
constexpr std::int16_t kAtRoot = -1;
constexpr std::int16_t kNotThere = -2;

std::int16_t child_of(std::span<const DraftedNode> drafted, std::int16_t parent, Token token) {
  if (parent == kNotThere) return kNotThere;
  const auto child = std::find_if(drafted.begin(), drafted.end(), [&](const DraftedNode& node) {
    return node.parent == parent && node.token == token;
  });
  return child == drafted.end() ? kNotThere : static_cast<std::int16_t>(child - drafted.begin());
}

}  // namespace

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
  drafted_.assign(1, wanted.drafted.empty() ? kNotThere : kAtRoot);
  followers_ = {};
  if (!wanted.text.empty()) look_up_pairs(wanted.text.back());
  lesson_.clear();
  raw_ = best_ = 1.0;
  expanding_ = wanted.max_nodes > 0;
  cut_by_threshold_ = false;
  cut_back_ = false;
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
  drafted_.push_back(child_of(wish_->drafted, drafted_[above], taken.token));
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
  if (drafted_[here] != kNotThere) add_drafted(candidates);
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

// What the draft source has below the node, if it has anything there.
void Growth::add_drafted(Candidates& candidates) const {
  const std::int16_t here = drafted_.back();
  const float above = here == kAtRoot ? 1.0F : wish_->drafted[static_cast<std::size_t>(here)].survival;
  const auto stated = [above](float survival) { return cells::stated(above > 0 ? survival / above : 0.0F); };
  std::array<DraftedChild, Candidates::kMostDrafted> children;
  std::uint32_t count = 0;
  float survival = 0;
  bool states = false;
  for (const DraftedNode& node : wish_->drafted) {
    if (node.parent != here || count == children.size()) continue;
    states = node.survival != DraftedNode::kUnstated;
    survival += states ? node.survival : 0.0F;
    children[count] = {node.token, states ? stated(node.survival) : cells::unstated(count)};
    ++count;
  }
  if (count == 0) return;
  const std::uint32_t together = states ? stated(survival) : cells::unstated(count - 1);
  candidates.add_drafted({children.data(), count}, together, depths_.back() + 1);
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

void Growth::keep(std::size_t nodes) {
  if (nodes >= nodes_.size()) return;
  nodes_.resize(nodes);
  if (learned()) lesson_.cut(nodes);
  cut_back_ = true;
}

}  // namespace draftd
