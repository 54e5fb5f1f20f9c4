// The tree that a preset draws up for one request. It holds every limit there
// is, so that no preset has to know them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "draft/frontier.h"
#include "draftd/drafting.h"

namespace draftd {

class Plan {
 public:
  using Node = std::int16_t;  // in the order added
  static constexpr Node kRoot = -1;

  // An empty tree of at most `most` nodes, none below `min_survival`.
  void begin(const DraftWish& wish, std::uint32_t most, double min_survival) {
    wish_ = &wish;
    most_ = most;
    min_survival_ = min_survival;
    max_breadth_ = wish.chain ? 1 : wish.policy.max_breadth;
    score_ = 0.0;
    cut_by_threshold_ = false;
    nodes_.clear();
    families_.assign(1, {});
  }

  // The child of `parent` with that token, new if there was none; nothing where
  // a limit forbids it. A node never survives its parent.
  std::optional<Node> child(Node parent, Token token, double survival, Source source) {
    for (Node known = family(parent).first_child; known != kNone; known = family(known).next) {
      if (nodes_[static_cast<std::size_t>(known)].token == token) return known;
    }
    if (full() || token >= wish_->vocabulary || !may_have_more(parent)) return std::nullopt;
    if (parent != kRoot) survival = std::min(survival, nodes_[static_cast<std::size_t>(parent)].survival);
    if (survival < min_survival_) {
      cut_by_threshold_ = true;
      return std::nullopt;
    }
    const auto added = static_cast<Node>(nodes_.size());
    nodes_.push_back({survival, token, parent, source});
    families_.push_back({kNone, family(parent).first_child, 0, family(parent).depth + 1});
    family(parent).first_child = added;
    ++family(parent).children;
    score_ += survival;
    return added;
  }

  std::uint32_t most() const { return most_; }
  bool full() const { return nodes_.size() == most_; }
  double score() const { return score_; }  // sum of the survivals: tokens that will be accepted, if they are right
  bool cut_by_threshold() const { return cut_by_threshold_; }
  void count_cut_of(const Plan& other) { cut_by_threshold_ = cut_by_threshold_ || other.cut_by_threshold_; }

  // The nodes, likeliest first, parents first, ties in the order added. Ends the plan.
  std::span<const Proposal> by_survival() {
    order_.resize(nodes_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<Node>(i);
    const auto likelier = [&](Node a, Node b) {
      const double of_a = nodes_[static_cast<std::size_t>(a)].survival;
      const double of_b = nodes_[static_cast<std::size_t>(b)].survival;
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::sort(order_.begin(), order_.end(), likelier);
    place_.resize(nodes_.size());
    sorted_.clear();
    for (const Node node : order_) {
      Proposal proposal = nodes_[static_cast<std::size_t>(node)];
      if (proposal.parent != kRoot) proposal.parent = place_[static_cast<std::size_t>(proposal.parent)];
      place_[static_cast<std::size_t>(node)] = static_cast<Node>(sorted_.size());
      sorted_.push_back(proposal);
    }
    return sorted_;
  }

 private:
  static constexpr Node kNone = -1;

  struct Family {
    Node first_child = kNone;
    Node next = kNone;  // sibling
    std::uint32_t children = 0;
    std::uint32_t depth = 0;
  };

  Family& family(Node node) { return families_[static_cast<std::size_t>(node + 1)]; }

  bool may_have_more(Node parent) {
    if (family(parent).depth == wish_->policy.max_depth || family(parent).children == max_breadth_) return false;
    if (parent == kRoot) return true;
    const auto& stop_ids = wish_->stop_ids;
    return std::find(stop_ids.begin(), stop_ids.end(), nodes_[static_cast<std::size_t>(parent)].token) ==
           stop_ids.end();
  }

  const DraftWish* wish_ = nullptr;
  std::uint32_t most_ = 0;
  std::uint32_t max_breadth_ = 0;
  double min_survival_ = 0.0;
  double score_ = 0.0;
  bool cut_by_threshold_ = false;
  std::vector<Proposal> nodes_;
  std::vector<Family> families_;  // of the root and the nodes
  std::vector<Node> order_;
  std::vector<Node> place_;
  std::vector<Proposal> sorted_;
};

}  // namespace draftd
