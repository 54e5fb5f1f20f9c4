// Drafting: from the evidence of several indexes to trees of likely
// continuations, for a whole batch in lockstep.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "draftd/catalogue.h"
#include "draftd/index.h"
#include "draftd/model.h"
#include "draftd/recent_pairs.h"
#include "draftd/segments.h"
#include "draftd/step_cost.h"
#include "draftd/types.h"

namespace draftd {

// A live index to draft from and the place of the request's text in it.
struct LiveSource {
  const Index* index;
  Source kind;
  Cursor cursor;
};

// Segments to draft from, as one text.
struct SealedSource {
  const SegmentSet* segments;
  Source kind;
  // In (0, 1]: its contexts count as shorter by this factor.
  double trust = 1.0;
};

// What followed each token lately in one text.
struct PairsSource {
  const RecentPairs* pairs;
  Source kind;
};

// Most sources of each of the two kinds that a draft can be made from.
inline constexpr std::size_t kMaxSources = 16;

// Frequent tokens, for nodes that the matches leave idle.
struct Fill {
  std::span<const FrequentToken> tokens;
  std::uint64_t total = 0;     // tokens of the text they are counted in
  std::uint32_t distinct = 0;  // different ones
};

// How a request wants its trees made.
struct DraftPolicy {
  Preset preset = Preset::kLearned;
  std::uint32_t max_depth = UINT32_MAX;    // nodes on one path, at least 1
  std::uint32_t max_breadth = UINT32_MAX;  // children of one node, at least 1
  double min_survival = 0.0;               // nodes below are not drafted; the batch's counts too, the higher of the two
  // Of suffix_decoding:
  double max_spec_factor = 1.0;  // most nodes for each token of the match
  double min_token_prob = 0.1;   // nodes below are not drafted
};

// A node that a draft source proposes.
struct DraftedNode {
  static constexpr float kUnstated = -1.0F;

  Token token;
  std::int16_t parent;  // index in its tree, before this one; -1: the root
  float survival;       // as the source states it, no higher than the parent's; or kUnstated
};

// What one request of a batch wants.
struct DraftWish {
  std::span<const Token> text;  // the request's; its last kMaxMatch tokens are enough
  std::span<const LiveSource> live;
  std::span<const SealedSource> sealed;
  std::uint32_t prompt = 0;  // tokens of its prompt
  Fill fill;
  const RecentPairs* own_pairs = nullptr;
  std::span<const PairsSource> history_pairs;  // the first that knows a token speaks for all
  std::span<const DraftedNode> drafted;        // by a draft source; of Preset::kLearned
  const Model* model = nullptr;                // of Preset::kLearned
  std::span<const Token> stop_ids;             // drafted, but nothing below them
  Token vocabulary = INT32_MAX;                // ids from here on are not drafted
  std::uint32_t max_nodes = 0;
  bool chain = false;  // one child for each node
  DraftPolicy policy;
};

struct DraftNode {
  Token token;
  std::int16_t parent;  // index in its tree; -1: the root
  Source source;        // of the longest context that proposed it, if one did
  float survival;       // probability that it and all its ancestors are accepted
};

class Crew;

// Builds trees for a batch. Keeps its buffers from call to call; one per thread.
class Drafter {
 public:
  // With a crew, which outlives it, its threads lend a hand with large batches. The drafts are the same.
  explicit Drafter(Crew* crew = nullptr);
  ~Drafter();

  // Drafts the likeliest nodes of the whole batch: at most `budget` in all, at
  // most each wish's max_nodes, none below `min_survival`. Nodes of a tree are
  // in the order of their survival, parents first. With a cost, as many as let
  // the step emit most tokens for each microsecond.
  void draft(std::span<const DraftWish> wishes, std::uint32_t budget, double min_survival,
             const StepCost* cost = nullptr);
  // The tree of wish i; valid until the next draft().
  std::span<const DraftNode> tree(std::size_t i) const;
  // What it was made from; empty for a preset. The caller may swap it for
  // another, to keep it and give its memory back. Valid until the next draft().
  Lesson& lesson(std::size_t i);
  // Why the tree of wish i is empty.
  Reason empty_because(std::size_t i) const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
