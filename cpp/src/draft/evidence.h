// What the indexes know about the continuation of one node.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "draftd/drafting.h"

namespace draftd {

// One context, a suffix of the node's text, and its followers in one source.
struct Level {
  static constexpr std::size_t kFollowers = 12;

  Source source;
  double length;           // of the context in tokens, times the trust in its source
  std::uint64_t total;     // occurrences with a follower
  std::uint32_t distinct;  // different followers
  std::array<Continuation, kFollowers> followers;
  std::uint32_t ranked;  // entries of `followers` used: most frequent first, ties to the more recent

  std::span<const Continuation> likeliest() const { return {followers.data(), ranked}; }
};

// The contexts of a node over all sources: longest first, by length times
// trust, ties in the order of the sources.
class Contexts {
 public:
  // A context with more different followers says little and costs much.
  static constexpr std::uint32_t kWidest = 64;

  // `cursors` are the node's, one per source.
  Contexts(std::span<const DraftSource> sources, std::span<const Cursor> cursors);
  // Reads the next context; false when there is none left but the empty one.
  bool next(Level& level);

 private:
  std::span<const DraftSource> sources_;
  std::array<Cursor, kMaxSources> walk_;
};

}  // namespace draftd
