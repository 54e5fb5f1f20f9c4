// What a builder has collected: documents as one stream of symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draftd/segment.h"
#include "sealed/layout.h"
#include "support/pod_vector.h"

namespace draftd {

struct SegmentBuilder::Storage {
  explicit Storage(std::string of_tokenizer) : fingerprint(std::move(of_tokenizer)) {
    stream.push_back(kSeparatorSymbol);
  }
  // Adds a document whose tokens are still to be written, to where this points.
  std::uint32_t* extend(std::size_t tokens, std::string_view label, std::int64_t time);

  std::string fingerprint;
  PodVector<std::uint32_t> stream;
  std::uint32_t largest_symbol = 0;
  std::vector<std::uint32_t> document_ends;  // slots of the separators behind the documents
  std::vector<std::int64_t> document_times;
  std::vector<std::uint32_t> label_ends;
  std::string labels;
};

}  // namespace draftd
