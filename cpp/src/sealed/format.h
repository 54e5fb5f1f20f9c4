// The frame of a segment file: the header and where the sections lie. All
// numbers are little-endian. docs/segment-format.md says it in full.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "draftd/index.h"
#include "sealed/layout.h"
#include "support/xxh64.h"

namespace draftd {

enum class Section : std::uint8_t {
  kDocumentEnds,
  kDocumentTimes,
  kLabelEnds,
  kLabels,
  kText,
  kEntries,
  kKeys,
  kFrequentTokens,
  kFingerprint,
};
inline constexpr std::array kSectionNames{"document ends", "document times", "label ends",      "labels",     "text",
                                          "entries",       "keys",           "frequent tokens", "fingerprint"};
inline constexpr std::size_t kSections = kSectionNames.size();

// Sections start at multiples of it, one behind the other; zeros lie between.
inline constexpr std::size_t kAlignment = 64;
inline std::uint64_t aligned(std::uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

struct SectionPlace {
  std::uint64_t offset;
  std::uint64_t length;    // bytes
  std::uint64_t checksum;  // of these and of the zeros up to the next section

  std::uint64_t next() const { return aligned(offset + length); }
};

inline constexpr std::array<char, 8> kMagic{'\x89', 'd', 'r', 'a', 'f', 't', 'd', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kFormatVersion;
  std::uint32_t width = 0;           // bits of a symbol
  std::uint32_t position_width = 0;  // bits of an entry
  std::uint32_t sections = kSections;
  std::uint64_t slots = 0;
  std::uint64_t documents = 0;
  std::uint64_t distinct_tokens = 0;
  std::uint64_t file_size = 0;
  std::array<SectionPlace, kSections> places{};
  std::array<std::uint64_t, 5> reserved{};  // zeros
  std::uint64_t checksum = 0;               // of the bytes before

  std::uint64_t tokens() const { return slots - documents - 1; }
  SectionPlace& place(Section section) { return places[static_cast<std::size_t>(section)]; }
  const SectionPlace& place(Section section) const { return places[static_cast<std::size_t>(section)]; }
};
inline std::uint64_t checksum_of(const Header& header) {
  return xxh64({reinterpret_cast<const std::uint8_t*>(&header), offsetof(Header, checksum)});
}
static_assert(sizeof(Header) == 320 && sizeof(Header) % kAlignment == 0);

// Positions are signed 32-bit numbers while they are sorted.
inline constexpr std::uint64_t kMostSlots = (std::uint64_t{1} << 31) - 2;

// Packed numbers have room behind them to be read eight bytes at a time.
inline std::uint64_t packed_size(std::uint64_t count, unsigned width) { return (count * width + 7) / 8 + 8; }

inline std::uint64_t keys_for(std::uint64_t entries) { return (entries + kEntriesPerKey - 1) / kEntriesPerKey; }

// As many of the last three symbols as fit into 64 bits.
inline unsigned symbols_of_key(unsigned width) { return std::min(3U, 64 / width); }

inline std::uint64_t frequent_tokens_for(std::uint64_t distinct_tokens) {
  return std::min<std::uint64_t>(distinct_tokens, Index::kFrequentTokens);
}

}  // namespace draftd
