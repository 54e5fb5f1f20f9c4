// An engine with one namespace, and a verifier that leaves documents to its histories.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "draftd/engine.h"
#include "verifier.h"

namespace draftd::testing {

inline HistoryKey own() { return {0, ""}; }
inline HistoryKey of_team() { return {0, "team"}; }

inline RequestOptions sharing_with(const std::string& group) {
  RequestOptions options;
  options.share = Share::kGroup;
  options.group = group;
  return options;
}

inline RequestOptions sharing_nothing() {
  RequestOptions options;
  options.share = Share::kNothing;
  return options;
}

inline std::vector<std::vector<Token>> texts_of(const HistoryDocuments& documents) {
  std::vector<std::vector<Token>> texts;
  std::int64_t begin = 0;
  for (const std::int64_t end : documents.document_end) {
    texts.emplace_back(documents.tokens.begin() + begin, documents.tokens.begin() + end);
    begin = end;
  }
  return texts;
}

struct OneNamespace {
  explicit OneNamespace(EngineLimits limits = kAmple) : engine(limits, false) { engine.create_namespace(); }
  void share(std::span<const Token> output, const std::string& label, std::int64_t time = 0,
             const RequestOptions& options = {}) {
    writer.share(1, output, options, label, time);
    engine.index_slice(SIZE_MAX);
  }
  // Of a history that has something to freeze.
  HistoryDocuments freeze(const HistoryKey& key = own()) {
    auto frozen = engine.freeze_history(key);
    if (!frozen) throw std::logic_error("nothing to freeze");
    return *std::move(frozen);
  }
  HistoryState state(const HistoryKey& key = own()) const {
    for (HistoryState& state : engine.histories()) {
      if (state.history.group == key.group) return state;
    }
    throw std::out_of_range("no history of group " + key.group);
  }

  Engine engine;
  Verifier writer{engine, 1};
};

}  // namespace draftd::testing
