// Bytes of a segment file to be damaged and opened.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draftd/nearest.h"
#include "draftd/segments.h"
#include "sealed/format.h"

namespace draftd::testing {

using Bytes = std::vector<std::uint8_t>;

// A name for a file that is removed with the object.
class ScratchFile {
 public:
  ScratchFile() {
    static std::atomic<int> number{0};
    const auto name = "draftd-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".scratch";
    path_ = (std::filesystem::temp_directory_path() / name).string();
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

  Bytes read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(std::span<const std::uint8_t> bytes) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

// Makes every checksum right again, as who wants to do harm would.
inline void reseal(Bytes& file) {
  Header header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  for (SectionPlace& place : header.places) {
    if (place.offset > file.size() || place.length > file.size() - place.offset || place.next() > file.size()) continue;
    place.checksum = xxh64(std::span(file).subspan(place.offset, place.next() - place.offset));
  }
  header.checksum = checksum_of(header);
  std::memcpy(file.data(), &header, sizeof header);
}

// Uses everything of a segment, also for searches; a sum, so that nothing is optimised away.
inline std::uint64_t read_all(const std::shared_ptr<const Segment>& opened) {
  const Segment& segment = *opened;
  const SegmentSet set{opened};
  std::uint64_t sum = segment.fingerprint().size() + segment.distinct_tokens();
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < segment.documents(); ++i) {
    const SegmentDocument document = segment.document(i);
    tokens.resize(document.end - document.begin);
    segment.read(document.begin, tokens);
    Nearest nearest;
    NearestSearch search;
    search.add(set, tokens, nearest);
    search.run();
    for (const Occurrence& found : std::span(nearest.occurrences).first(nearest.size)) {
      sum += found.segment->symbol(found.slot) + found.length;
    }
    for (const Token token : tokens) sum += static_cast<std::uint32_t>(token);
    for (const char c : document.label) sum += static_cast<std::uint8_t>(c);
    sum += static_cast<std::uint64_t>(document.time);
  }
  const Segment::Layout& layout = segment.layout();
  for (std::size_t i = 0; i < layout.entry_count; ++i) sum += layout.symbol(layout.entry(i));
  for (std::size_t i = 0; i < layout.key_count; ++i) sum += layout.keys[i];
  for (const FrequentToken& frequent : segment.frequent_tokens()) sum += frequent.count;
  return sum;
}

}  // namespace draftd::testing
