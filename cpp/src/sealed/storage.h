// What an open segment is made of: the mapping and pointers into it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "draftd/segment.h"
#include "sealed/layout.h"
#include "support/mapped_file.h"

namespace draftd {

struct Segment::Storage {
  explicit Storage(const std::string& file_path) : path(file_path), file(file_path) {}

  std::string path;
  MappedFile file;
  Layout layout{};
  std::size_t distinct_tokens = 0;
  std::span<const std::uint32_t> document_ends;  // slots of the separators behind the documents
  std::span<const std::int64_t> document_times;
  std::span<const std::uint32_t> label_ends;
  std::string_view labels;
  std::span<const FrequentToken> frequent_tokens;
  std::string_view fingerprint;
};

}  // namespace draftd
