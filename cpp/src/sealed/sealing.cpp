// Writing a segment: the stream, its contexts in order, and what goes with them.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sealed/collected.h"
#include "sealed/file_writer.h"
#include "sealed/format.h"
#include "sealed/suffix_sort.h"

namespace draftd {
namespace {

struct Occurrences {
  std::uint32_t symbol;
  std::uint32_t count;
  std::uint32_t last;  // slot
};

std::vector<Occurrences> occurrences(std::span<const std::uint32_t> stream) {
  std::vector<std::uint32_t> symbols(stream.begin(), stream.end());
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  std::vector<Occurrences> all;
  for (const std::uint32_t symbol : symbols) all.push_back({symbol, 0, 0});
  for (std::uint32_t slot = 0; slot < stream.size(); ++slot) {
    const auto rank = std::lower_bound(symbols.begin(), symbols.end(), stream[slot]) - symbols.begin();
    all[static_cast<std::size_t>(rank)].count += 1;
    all[static_cast<std::size_t>(rank)].last = slot;
  }
  return all;
}

std::vector<FrequentToken> most_frequent(std::vector<Occurrences> tokens) {
  const auto kept = static_cast<std::ptrdiff_t>(frequent_tokens_for(tokens.size()));
  std::partial_sort(tokens.begin(), tokens.begin() + kept, tokens.end(),
                    [](const Occurrences& a, const Occurrences& b) {
                      return a.count != b.count ? a.count > b.count : a.last > b.last;
                    });
  std::vector<FrequentToken> ranked;
  for (std::ptrdiff_t i = 0; i < kept; ++i) {
    ranked.push_back({static_cast<Token>(tokens[static_cast<std::size_t>(i)].symbol - 1),
                      tokens[static_cast<std::size_t>(i)].count});
  }
  return ranked;
}

}  // namespace

void SegmentBuilder::write(const std::string& path) {
  if (documents() == 0) throw std::invalid_argument("segment: there is nothing to write");
  const Storage s = std::exchange(*storage_, Storage(storage_->fingerprint));
  const std::span<const std::uint32_t> stream(s.stream.data(), s.stream.size());
  const std::vector<Occurrences> found = occurrences(stream);

  Header header;
  header.width = static_cast<std::uint32_t>(std::bit_width(s.largest_symbol));
  header.position_width = static_cast<std::uint32_t>(std::bit_width(stream.size() - 1));
  header.slots = stream.size();
  header.documents = s.document_ends.size();
  header.distinct_tokens = found.size() - 1;

  FileWriter file(path);
  file.write(Section::kDocumentEnds, std::span<const std::uint32_t>(s.document_ends));
  file.write(Section::kDocumentTimes, std::span<const std::int64_t>(s.document_times));
  file.write(Section::kLabelEnds, std::span<const std::uint32_t>(s.label_ends));
  file.write(Section::kLabels, std::span<const char>(s.labels));

  file.begin(Section::kText);
  for (const std::uint32_t symbol : stream) file.pack(symbol, header.width);
  file.end_packed();

  std::vector<std::int32_t> text;
  for (std::size_t slot = stream.size(); slot-- > 0;) {
    const auto rank = std::lower_bound(found.begin(), found.end(), stream[slot],
                                       [](const Occurrences& a, std::uint32_t symbol) { return a.symbol < symbol; });
    text.push_back(static_cast<std::int32_t>(rank - found.begin()));
  }
  std::vector<std::int32_t> order(text.size());
  sort_suffixes(text, static_cast<std::int32_t>(found.size()), order);

  const unsigned key_symbols = symbols_of_key(header.width);
  std::vector<std::uint64_t> keys;
  std::size_t entries = 0;
  file.begin(Section::kEntries);
  for (const std::int32_t start : order) {
    const std::size_t slot = stream.size() - static_cast<std::size_t>(start);
    if (slot == stream.size() || stream[slot] == kSeparatorSymbol) continue;
    if (entries++ % kEntriesPerKey == 0) {
      std::uint64_t key = 0;
      for (std::size_t back = 1; back <= key_symbols; ++back)
        key = key << header.width | (slot >= back ? stream[slot - back] : 0);
      keys.push_back(key);
    }
    file.pack(static_cast<std::uint32_t>(slot), header.position_width);
  }
  file.end_packed();
  file.write(Section::kKeys, std::span<const std::uint64_t>(keys));
  file.write(Section::kFrequentTokens, std::span<const FrequentToken>(most_frequent({found.begin() + 1, found.end()})));
  file.write(Section::kFingerprint, std::span<const char>(s.fingerprint));
  file.finish(header);
}

}  // namespace draftd
