// What a search reads of a segment: pointers into the mapping, and how to read
// the numbers that are packed there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "draftd/segment.h"

namespace draftd {

static_assert(std::endian::native == std::endian::little, "segments are little-endian and read in place");

// A document ends at a separator; a token's symbol is its id + 1.
inline constexpr std::uint32_t kSeparatorSymbol = 0;

// One key for each so many entries.
inline constexpr std::uint32_t kEntriesPerKey = 16;

// Number i of an array of `width`-bit numbers, width <= 32. Reads up to 8 bytes
// behind it, which every packed section has.
inline std::uint32_t packed_number(const std::uint8_t* array, std::size_t i, unsigned width) {
  const std::size_t bit = i * width;
  std::uint64_t word;
  std::memcpy(&word, array + bit / 8, sizeof word);
  return static_cast<std::uint32_t>(word >> (bit % 8) & ((std::uint64_t{1} << width) - 1));
}

struct Segment::Layout {
  const std::uint8_t* text;     // the stream: a separator, then each document and its separator
  unsigned width;               // bits of a symbol
  const std::uint8_t* entries;  // a slot for each token, sorted by the stream read backwards from before the slot
  unsigned position_width;      // bits of an entry
  const std::uint64_t* keys;    // of entry 0, 16, 32, ...: the last key_symbols symbols before its slot
  std::size_t slots;            // symbols of the stream
  std::size_t entry_count;
  std::size_t key_count;
  unsigned key_symbols;  // the most recent is in the highest bits; before slot 0 there are zeros

  std::uint32_t symbol(std::size_t slot) const { return packed_number(text, slot, width); }
  // Slot of the token that follows context i.
  std::uint32_t entry(std::size_t i) const { return packed_number(entries, i, position_width); }
};

}  // namespace draftd
