// One search: the place of one context among the entries of one segment.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "draftd/nearest.h"
#include "sealed/layout.h"
#include "sealed/packed_context.h"

namespace draftd {

inline void prefetch_symbols(const Segment::Layout& segment, std::uint32_t slot) {
  __builtin_prefetch(segment.text + std::uint64_t{slot} * segment.width / 8);
}

inline void prefetch_entry(const Segment::Layout& segment, std::uint32_t entry) {
  __builtin_prefetch(segment.entries + std::uint64_t{entry} * segment.position_width / 8);
}

// One context in one segment. While the samples, every kEntriesPerKey-th entry,
// are searched: those before `first` stand before the context, those from
// `first + count` on don't.
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

  // Once the samples are searched: brings in the entries that will be looked
  // at, then the text before them, then finds the nearest.
  void fetch_entries() const;
  void fetch_text() const;
  void collect();

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

 private:
  std::pair<std::uint32_t, std::uint32_t> block() const;
  std::pair<std::uint32_t, std::uint32_t> surroundings() const;
};

}  // namespace draftd
