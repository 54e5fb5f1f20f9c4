// What the indexes know about the continuation of one node.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "draft/sealed_text.h"
#include "draftd/drafting.h"
#include "learn/cells.h"

namespace draftd {

// One context, a suffix of the node's text, and its followers in one source.
struct Level {
  static constexpr std::size_t kFollowers = 8;

  struct Follower {
    Token token;
    std::uint32_t count;
    std::uint32_t last;     // the larger, the more recent
    std::uint32_t recency;  // class of the model's cells
  };

  Source source;
  cells::Origin origin;    // of the latest follower
  double length;           // of the context in tokens, times the trust in its source
  std::uint64_t total;     // occurrences with a follower
  std::uint32_t distinct;  // different followers
  std::array<Follower, kFollowers> followers;
  Token latest;          // follower
  std::uint32_t ranked;  // entries of `followers` used: most frequent first, ties to the more recent

  std::span<const Follower> likeliest() const { return {followers.data(), ranked}; }
};

// The contexts of a node over all sources: longest first, by length times
// trust, ties in the order of the sources, the live ones first.
class Contexts {
 public:
  // A context with more different followers says little and costs much.
  static constexpr std::uint32_t kWidest = 64;

  // The node's place in each of the live and of the sealed sources.
  Contexts(const DraftWish& wish, std::span<const Cursor> cursors, std::span<SealedText> texts,
           std::span<const Agreeing> agreeing, std::uint32_t depth);
  // Reads the next context; false when there is none left but the empty one.
  bool next(Level& level);

 private:
  // The next context of one source.
  struct Walk {
    double length;         // times trust; 0: none but the empty one is left
    State state;           // of a live source
    std::uint32_t tokens;  // of the context; of a sealed source: occurrences that have it
  };

  bool read_live(std::size_t source, Level& level);
  bool read_sealed(std::size_t source, Level& level);
  void lengthen(std::size_t source);

  std::span<const LiveSource> live_;
  std::span<const SealedSource> sealed_;
  std::uint32_t prompt_;  // tokens of the request's prompt
  std::span<SealedText> texts_;
  std::span<const Agreeing> agreeing_;
  std::uint32_t depth_;
  std::size_t sources_;
  std::array<Walk, 2 * kMaxSources> walks_;  // the first `sources_` are used
};

}  // namespace draftd
