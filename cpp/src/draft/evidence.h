// What the indexes know about the continuation of one node.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "draftd/drafting.h"

namespace draftd {

// Followers of one context in one source.
struct Level {
  Source source;
  std::uint32_t length;    // of the context, in tokens
  std::uint64_t total;     // occurrences with a follower
  std::uint32_t distinct;  // different followers
  std::uint32_t ranked;    // entries used of Evidence::followers
};

struct Evidence {
  // Contexts considered per node: the three longest over all sources. Five or
  // six gain half a percent of accepted tokens and cost twice the time.
  static constexpr std::size_t kLevels = 3;
  static constexpr std::size_t kFollowers = 12;  // per level
  // A context with more different followers says little and costs much.
  static constexpr std::uint32_t kWidest = 64;

  std::array<Level, kLevels> levels;
  std::size_t level_count = 0;
  std::array<std::array<Continuation, kFollowers>, kLevels> followers;  // most frequent first, by level

  std::span<const Continuation> of(std::size_t level) const { return {followers[level].data(), levels[level].ranked}; }
};

// Collects the evidence at the given cursors, one per source: contexts longest
// first, ties in the order of the sources; followers most frequent first, ties
// to the more recent.
void gather(std::span<const DraftSource> sources, std::span<const Cursor> cursors, Evidence& evidence);

}  // namespace draftd
