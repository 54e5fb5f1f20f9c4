// One tree while it grows best-first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/candidates.h"
#include "draft/evidence.h"
#include "draft/frontier.h"
#include "draft/presets/presets.h"
#include "draftd/drafting.h"

namespace draftd {

// An expansion is split into stages, so that a batch does one stage for all
// requests before the next and cache misses overlap.
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
  // Takes nothing more, and gives back all but the first `nodes`, with what was learnt to tell of them.
  void keep(std::size_t nodes);

  bool done() const { return nodes_.size() == wish_->max_nodes || frontier_.empty(); }
  // Whether there was a node that it could have had.
  bool left_out() const { return cut_back_ || !frontier_.empty(); }
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
  void add_drafted(Candidates& candidates) const;
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
  std::vector<std::int16_t> drafted_;   // of the root and the nodes, where they are in the draft source's tree
  std::array<Followers, 2> followers_;  // of its last token: of the request, of the history
  Lesson lesson_;
  double raw_;   // survival of the node being expanded, not corrected
  double best_;  // of the likeliest node that can be taken next, corrected
  bool expanding_;
  bool cut_by_threshold_;
  bool cut_back_;
};

}  // namespace draftd
