// Writing a segment: the stream, its contexts in order, and what goes with them.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sealed/alphabet.h"
#include "sealed/collected.h"
#include "sealed/file_writer.h"
#include "sealed/format.h"
#include "sealed/suffix_sort.h"
#include "support/large_array.h"

namespace draftd {
namespace {

// The stream read backwards, each symbol as its rank.
LargeArray<std::int32_t> reversed(std::span<const std::uint32_t> stream, const Alphabet& alphabet) {
  LargeArray<std::int32_t> text(stream.size());
  for (std::size_t slot = 0; slot < stream.size(); ++slot) {
    text[stream.size() - 1 - slot] = alphabet.rank(stream[slot]);
  }
  return text;
}

std::vector<FrequentToken> most_frequent(std::span<const std::int32_t> text, const Alphabet& alphabet) {
  struct Occurrences {
    std::uint32_t symbol;
    std::uint32_t count;
    std::size_t last;  // the first in the reversed text
  };
  std::vector<Occurrences> tokens(alphabet.size());
  for (std::size_t i = text.size(); i-- > 0;) {
    Occurrences& token = tokens[static_cast<std::size_t>(text[i])];
    token = {alphabet.symbol(text[i]), token.count + 1, i};
  }
  const auto first = tokens.begin() + 1;  // behind the separator
  const auto kept = first + static_cast<std::ptrdiff_t>(frequent_tokens_for(alphabet.size() - 1));
  std::partial_sort(first, kept, tokens.end(), [](const Occurrences& a, const Occurrences& b) {
    return a.count != b.count ? a.count > b.count : a.last < b.last;
  });
  std::vector<FrequentToken> ranked;
  std::transform(first, kept, std::back_inserter(ranked), [](const Occurrences& token) {
    return FrequentToken{static_cast<Token>(token.symbol - 1), token.count};
  });
  return ranked;
}

// The last symbols before a context's follower, the most recent in the highest bits.
std::uint64_t key_of(std::span<const std::int32_t> text, std::size_t start, const Alphabet& alphabet, unsigned width) {
  std::uint64_t key = 0;
  for (std::size_t i = start; i < start + symbols_of_key(width); ++i) {
    key = key << width | (i < text.size() ? alphabet.symbol(text[i]) : 0);
  }
  return key;
}

// Writes the entries and their keys: a suffix of the reversed text is a context,
// and the symbol before it is what followed.
void write_contexts(FileWriter& file, const Header& header, std::span<const std::int32_t> text,
                    const Alphabet& alphabet, std::span<const std::uint32_t> document_ends) {
  std::vector<bool> has_follower(text.size(), true);
  has_follower[0] = false;
  for (const std::uint32_t separator : document_ends) has_follower[text.size() - separator] = false;
  LargeArray<std::int32_t> order(text.size());
  sort_suffixes(text, static_cast<std::int32_t>(alphabet.size()), order.all());

  std::vector<std::uint64_t> keys;
  keys.reserve(keys_for(header.tokens()));
  std::size_t entries = 0;
  file.begin(Section::kEntries);
  for (const std::int32_t start : order.all()) {
    if (!has_follower[static_cast<std::size_t>(start)]) continue;
    file.pack(static_cast<std::uint32_t>(text.size()) - static_cast<std::uint32_t>(start), header.position_width);
    if (entries++ % kEntriesPerKey == 0) keys.push_back(static_cast<std::uint64_t>(start));
  }
  file.end_packed();

  // The keys are all over the text: their starts were noted first, so that they can be asked for some keys ahead.
  constexpr std::size_t kAhead = 32;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) __builtin_prefetch(&text[keys[i + kAhead]]);
    keys[i] = key_of(text, keys[i], alphabet, header.width);
  }
  file.write(Section::kKeys, std::span<const std::uint64_t>(keys));
}

}  // namespace

void SegmentBuilder::write(const std::string& path) {
  if (documents() == 0) throw std::invalid_argument("segment: there is nothing to write");
  Storage s = std::exchange(*storage_, Storage(storage_->fingerprint));
  const std::span<const std::uint32_t> stream(s.stream.data(), s.stream.size());
  const Alphabet alphabet(stream, s.largest_symbol);

  Header header;
  header.width = static_cast<std::uint32_t>(std::bit_width(s.largest_symbol));
  header.position_width = static_cast<std::uint32_t>(std::bit_width(stream.size() - 1));
  header.slots = stream.size();
  header.documents = s.document_ends.size();
  header.distinct_tokens = alphabet.size() - 1;

  FileWriter file(path);
  file.write(Section::kDocumentEnds, std::span<const std::uint32_t>(s.document_ends));
  file.write(Section::kDocumentTimes, std::span<const std::int64_t>(s.document_times));
  file.write(Section::kLabelEnds, std::span<const std::uint32_t>(s.label_ends));
  file.write(Section::kLabels, std::span<const char>(s.labels));
  file.begin(Section::kText);
  for (const std::uint32_t symbol : stream) file.pack(symbol, header.width);
  file.end_packed();

  const LargeArray<std::int32_t> text = reversed(stream, alphabet);
  s.stream = {};  // its memory is needed for sorting
  write_contexts(file, header, text.all(), alphabet, s.document_ends);

  const std::vector<FrequentToken> ranked = most_frequent(text.all(), alphabet);
  file.write(Section::kFrequentTokens, std::span<const FrequentToken>(ranked));
  file.write(Section::kFingerprint, std::span<const char>(s.fingerprint));
  file.finish(header);
}

}  // namespace draftd
