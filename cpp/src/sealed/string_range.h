// All places of a string in a segment, exactly: what an explanation counts. The
// search that drafts use finds the nearest sixteen, and many times faster.
#pragma once

#include <cstdint>
#include <span>

#include "draftd/segment.h"
#include "draftd/types.h"
#include "sealed/layout.h"

namespace draftd {

// Entries [first, last).
struct EntryRange {
  std::uint32_t first;
  std::uint32_t last;

  std::uint32_t size() const { return last - first; }
};

// Tokens at the end of `string` that stand right before the slot.
std::uint32_t agreement(const Segment::Layout& segment, std::size_t slot, std::span<const Token> string);
// The slots right before which the string stands: one for each of its
// occurrences that a token of the same document follows.
EntryRange slots_behind(const Segment::Layout& segment, std::span<const Token> string);
// Length of the longest suffix of `string` that has such a slot.
std::uint32_t longest_followed(const Segment::Layout& segment, std::span<const Token> string);

}  // namespace draftd
