// What an engine says of its histories, and what it takes back at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "draftd/types.h"

namespace draftd {

// Which history: that of a namespace, or of a group in it.
struct HistoryKey {
  std::uint32_t name_space;
  std::string group;  // empty: the namespace's own
};

// Documents of one head of a history, as columns.
struct HistoryDocuments {
  HistoryKey history;
  std::uint64_t generation = 0;  // of the head
  std::vector<Token> tokens;
  std::vector<std::int64_t> document_end;  // running ends in `tokens`
  std::vector<std::string> labels;         // request ids
  std::vector<std::int64_t> times;         // when they were closed, unix seconds
};

struct HistoryState {
  HistoryKey history;
  std::uint64_t generation;  // of the head; grows whenever a new one is begun
  std::size_t head_tokens;
  std::size_t head_bytes;
  std::size_t frozen_tokens;
  std::size_t segments;  // still held: over a limit the oldest goes
  std::int64_t oldest;   // time of the first document of its heads; 0: they have none
};

}  // namespace draftd
