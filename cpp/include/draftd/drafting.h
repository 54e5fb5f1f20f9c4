// Drafting: from the evidence of several indexes to trees of likely
// continuations, for a whole batch in lockstep.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "draftd/catalogue.h"
#include "draftd/index.h"
#include "draftd/types.h"

namespace draftd {

// An index to draft from and the place of the request's text in it.
struct DraftSource {
  const Index* index;
  Source kind;
  Cursor cursor;
  // In (0, 1]: its contexts count as shorter by this factor.
  double trust = 1.0;
};

// Tokens over which it is judged how well a corpus fits a text.
inline constexpr std::size_t kReach = 16;
// The trust in a corpus whose matches at the last kReach tokens of the text are
// `reach` long in all, beside others of which the best reaches `furthest`. A
// text coincides with any corpus for two or three tokens; without this, four
// unrelated corpora cost the matching one a tenth of its accepted tokens.
double trust(std::uint32_t reach, std::uint32_t furthest);

// Own text, history, group history and the corpora of a namespace.
inline constexpr std::size_t kMaxSources = 16;

// What one request of a batch wants.
struct DraftWish {
  std::span<const DraftSource> sources;
  const Index* fill = nullptr;      // its frequent tokens use nodes that matches leave idle
  std::span<const Token> stop_ids;  // drafted, but nothing below them
  Token vocabulary = INT32_MAX;     // ids from here on are not drafted
  std::uint32_t max_nodes = 0;
  bool chain = false;
};

struct DraftNode {
  Token token;
  std::int16_t parent;  // index in its tree; -1: the root
  Source source;        // of the longest context that proposed it
  float survival;       // probability that it and all its ancestors are accepted
};

// Builds trees for a batch. Keeps its buffers from call to call; one per thread.
class Drafter {
 public:
  Drafter();
  ~Drafter();

  // Drafts the likeliest nodes of the whole batch: at most `budget` in all, at
  // most each wish's max_nodes, none below `min_survival`. Nodes of a tree are
  // in the order of their survival, parents first.
  void draft(std::span<const DraftWish> wishes, std::uint32_t budget, double min_survival);
  // The tree of wish i; valid until the next draft().
  std::span<const DraftNode> tree(std::size_t i) const;
  // Why the tree of wish i is empty.
  Reason empty_because(std::size_t i) const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
