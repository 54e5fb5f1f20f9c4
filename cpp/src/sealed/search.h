// Where a context stands among the sorted contexts of segments. The entries
// around that place are the ones that agree with it longest: one search finds
// the longest match and everything next to it. Many searches run side by side,
// stage by stage, so that their cache misses overlap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "draftd/segments.h"
#include "draftd/types.h"
#include "sealed/packed_context.h"

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
  // Twice as many gain 0.06 % of emitted tokens.
  static constexpr std::uint32_t kMost = 16;

  std::uint32_t size;
  std::array<Occurrence, kMost> occurrences;
};

class NearestSearch {
 public:
  // Forgets what was added.
  void clear();
  // Adds a search for `context` in all segments of `set`; `run` writes to `found`.
  // The context must stay where it is until then.
  void add(const SegmentSet& set, std::span<const Token> context, Nearest& found);
  // Adds a search for no more than the length of the longest match.
  void add(const SegmentSet& set, std::span<const Token> context, std::uint32_t& longest);
  void run();

 private:
  // One context in one segment. While the samples, every kEntriesPerKey-th
  // entry, are searched: those before `first` stand before the context, those
  // from `first + count` on don't.
  struct Probe {
    Probe(const Segment::Layout& searched, std::uint32_t segment_age, std::span<const Token> text, Nearest* nearest,
          std::uint32_t* length)
        : segment(&searched),
          context(searched, text),
          key(context.key()),
          count(static_cast<std::uint32_t>(searched.key_count)),
          age(segment_age),
          found(nearest),
          longest(length) {}

    const Segment::Layout* segment;
    PackedContext context;
    std::uint64_t key;
    std::uint32_t first = 0;
    std::uint32_t count;
    std::uint32_t first_equal = 0;  // sample whose key is not below the context's
    std::uint32_t slot = 0;         // of the sample under comparison
    std::uint32_t age;              // of the segment's slot 0
    Nearest* found;                 // one of these two
    std::uint32_t* longest;
  };

  void add_probes(const SegmentSet& set, std::span<const Token> context, Nearest* found, std::uint32_t* longest);

  void narrow_by_keys();
  void narrow_by_text();
  void fetch_entries();
  template <typename IsBefore>
  void search_keys(IsBefore is_before);
  template <typename Condition>
  void select(Condition condition);

  std::vector<Probe> probes_;
  std::vector<Nearest*> found_;
  std::vector<Probe*> running_;  // those that a stage still works on
};

}  // namespace draftd
