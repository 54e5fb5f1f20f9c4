// Where a context stands among the sorted contexts of segments. The entries
// around that place are the ones that agree with it longest: one search finds
// the longest match and everything next to it. Many searches run side by side,
// stage by stage, so that their cache misses overlap.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "draftd/segments.h"
#include "draftd/types.h"

namespace draftd {

// A place in a segment where a suffix of the context occurs.
struct Occurrence {
  const Segment::Layout* segment;
  std::uint32_t slot;    // of the token that follows
  std::uint32_t age;     // position in the set of segments; the larger, the more recent
  std::uint32_t length;  // tokens of the context right before it, 1 to kMaxMatch
  std::uint32_t end;     // occurrences that are as long or longer
};

// The occurrences of a context that agree with it longest, longest first.
struct Nearest {
  // Twice as many gain 0.05 % of emitted tokens.
  static constexpr std::uint32_t kMost = 16;

  std::uint32_t size;
  std::array<Occurrence, kMost> occurrences;
};

// Keeps its buffers from run to run; one per thread.
class NearestSearch {
 public:
  NearestSearch();
  ~NearestSearch();

  // Forgets what was added.
  void clear();
  // Adds a search for `context` in all segments of `set`; `run` writes to `found`.
  // The context must stay where it is until then.
  void add(const SegmentSet& set, std::span<const Token> context, Nearest& found);
  // Adds a search for no more than the length of the longest match.
  void add(const SegmentSet& set, std::span<const Token> context, std::uint32_t& longest);
  void run();

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
