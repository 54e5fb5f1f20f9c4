// Opening a segment. The file may be damaged, or made to do harm: nothing of
// it is used before it was checked. What is not checked can give wrong drafts
// and nothing worse: the order of the entries, the keys, which tokens are frequent.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "sealed/file_reader.h"
#include "sealed/storage.h"

namespace draftd {
namespace {

constexpr std::uint32_t kLargestSymbol = std::uint32_t{INT32_MAX} + 1;

// Each document has a token, and the last one's separator is the last slot.
void check_document_ends(const FileReader& file, std::span<const std::uint32_t> ends) {
  std::uint64_t separator_before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    file.require(ends[i] > separator_before + 1, "out of order at document", i);
    separator_before = ends[i];
  }
  file.require(separator_before == file.header().slots - 1, "the last one is not the end of the text but", ends.back());
}

// Separators stand around documents and nowhere else.
void check_text(const FileReader& file, const Segment::Layout& layout, std::span<const std::uint32_t> ends) {
  file.require(layout.symbol(0) == kSeparatorSymbol, "no separator in slot", 0);
  std::uint32_t largest = 0;
  std::size_t slot = 1;
  for (const std::uint32_t end : ends) {
    for (; slot < end; ++slot) {
      const std::uint32_t symbol = layout.symbol(slot);
      file.require(symbol != kSeparatorSymbol, "a separator inside a document, in slot", slot);
      largest = std::max(largest, symbol);
    }
    file.require(layout.symbol(slot) == kSeparatorSymbol, "no separator in slot", slot);
    ++slot;
  }
  file.require(largest <= kLargestSymbol, "too large a symbol:", largest);
  file.require(static_cast<unsigned>(std::bit_width(largest)) == layout.width,
               "the largest symbol has another width:", largest);
}

// Each token has its entry.
void check_entries(const FileReader& file, const Segment::Layout& layout, std::span<const std::uint32_t> ends) {
  std::vector<bool> taken(std::size_t{1} << layout.position_width);
  taken[0] = true;
  for (const std::uint32_t end : ends) taken[end] = true;
  for (std::size_t i = 0; i < layout.entry_count; ++i) {
    const std::uint32_t slot = layout.entry(i);
    file.require(slot < layout.slots, "reaches over the end of the text: number", i);
    file.require(!taken[slot], "names a separator, or a token that has one already: number", i);
    taken[slot] = true;
  }
}

void check_keys(const FileReader& file, const Segment::Layout& layout) {
  const std::span<const std::uint64_t> keys(layout.keys, layout.key_count);
  for (std::size_t i = 1; i < keys.size(); ++i) file.require(keys[i - 1] <= keys[i], "out of order at number", i);
  file.require(static_cast<unsigned>(std::bit_width(keys.back())) <= layout.key_symbols * layout.width,
               "the last one is too large");
}

void check_frequent_tokens(const FileReader& file, std::span<const FrequentToken> ranked) {
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    file.require(ranked[i].token >= 0, "a negative id at rank", i);
    file.require(ranked[i].count >= 1 && ranked[i].count <= file.header().tokens(), "a wrong count at rank", i);
    file.require(i == 0 || ranked[i].count <= ranked[i - 1].count, "out of order at rank", i);
  }
}

void check_label_ends(const FileReader& file, std::span<const std::uint32_t> ends) {
  for (std::size_t i = 1; i < ends.size(); ++i) file.require(ends[i - 1] <= ends[i], "out of order at document", i);
}

}  // namespace

std::shared_ptr<const Segment> Segment::open(const std::string& path) {
  auto storage = std::make_unique<Storage>(path);
  Storage& s = *storage;
  FileReader file(s.path, s.file.bytes());
  const Header& header = file.header();
  s.distinct_tokens = header.distinct_tokens;

  // The ends come first: what the text and its entries must be follows from them.
  s.document_ends = file.array<std::uint32_t>(Section::kDocumentEnds, header.documents);
  check_document_ends(file, s.document_ends);
  s.document_times = file.array<std::int64_t>(Section::kDocumentTimes, header.documents);
  s.label_ends = file.array<std::uint32_t>(Section::kLabelEnds, header.documents);
  check_label_ends(file, s.label_ends);
  const std::span<const std::uint8_t> labels = file.bytes(Section::kLabels, s.label_ends.back());
  s.labels = {reinterpret_cast<const char*>(labels.data()), labels.size()};

  Layout& layout = s.layout;
  layout.slots = header.slots;
  layout.width = header.width;
  layout.text = file.bytes(Section::kText, packed_size(layout.slots, layout.width)).data();
  check_text(file, layout, s.document_ends);
  layout.entry_count = header.tokens();
  layout.position_width = header.position_width;
  layout.entries = file.bytes(Section::kEntries, packed_size(layout.entry_count, layout.position_width)).data();
  check_entries(file, layout, s.document_ends);
  layout.key_count = keys_for(layout.entry_count);
  layout.key_symbols = symbols_of_key(layout.width);
  layout.keys = file.array<std::uint64_t>(Section::kKeys, layout.key_count).data();
  check_keys(file, layout);

  s.frequent_tokens = file.array<FrequentToken>(Section::kFrequentTokens, frequent_tokens_for(s.distinct_tokens));
  check_frequent_tokens(file, s.frequent_tokens);
  const std::span<const std::uint8_t> fingerprint = file.bytes(Section::kFingerprint);
  s.fingerprint = {reinterpret_cast<const char*>(fingerprint.data()), fingerprint.size()};
  file.end();
  return std::shared_ptr<const Segment>(new Segment(std::move(storage)));
}

}  // namespace draftd
