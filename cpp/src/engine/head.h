// The live part of a history: an index that grows by documents, each with its
// label and time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "draftd/explanation.h"
#include "draftd/histories.h"
#include "draftd/index.h"
#include "draftd/recent_pairs.h"
#include "support/pod_vector.h"

namespace draftd {

class Head {
 public:
  explicit Head(std::uint64_t generation) : generation_(generation) {}

  // Goes on with the document under way, or begins one.
  void append(std::span<const Token> tokens, std::string_view label, std::int64_t time) {
    if (!under_way()) {
      std::copy(label.begin(), label.end(), labels_.extend(label.size()));
      label_ends_.push_back(labels_.size());
      times_.push_back(time);
    }
    pairs_.add_text(index_.text().back(), tokens);  // a separator where they begin the document
    index_.append(tokens);
  }
  void end_document() {
    if (!under_way()) return;
    ends_.push_back(index_.text().size());
    index_.end_document();
  }

  const Index& index() const { return index_; }
  const RecentPairs& pairs() const { return pairs_; }
  std::uint64_t generation() const { return generation_; }
  void set_generation(std::uint64_t generation) { generation_ = generation; }
  bool under_way() const { return times_.size() > ends_.size(); }
  std::size_t documents() const { return ends_.size(); }  // whole ones
  std::optional<std::int64_t> oldest() const { return times_.empty() ? std::nullopt : std::optional(times_[0]); }
  std::size_t memory_size() const {
    return sizeof(Head) + index_.memory_size() + pairs_.memory_size() + ends_.memory_size() + times_.memory_size() +
           label_ends_.memory_size() + labels_.memory_size();
  }

  // Copies up to `most` tokens of a document behind its first `skipped`;
  // with the last of them its end, label and time. Returns how many it copied.
  std::size_t copy(std::size_t document, std::size_t skipped, std::size_t most, HistoryDocuments& into) const {
    const std::size_t begin = begin_of(document);
    const std::span<const Token> rest = index_.text().subspan(begin, ends_[document] - begin).subspan(skipped);
    const std::span<const Token> piece = rest.first(std::min(most, rest.size()));
    into.tokens.insert(into.tokens.end(), piece.begin(), piece.end());
    if (piece.size() == rest.size()) {
      into.document_end.push_back(static_cast<std::int64_t>(into.tokens.size()));
      into.labels.emplace_back(label(document));
      into.times.push_back(times_[document]);
    }
    return piece.size();
  }
  // Of a token at that position of the index's text.
  DocumentPlace place(std::size_t position) const {
    const auto document =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
    return {std::string(label(document)), position - begin_of(document), times_[document]};
  }

 private:
  // A separator stands before each document.
  std::size_t begin_of(std::size_t document) const { return document == 0 ? 1 : ends_[document - 1] + 1; }
  std::string_view label(std::size_t document) const {
    const std::size_t begin = document == 0 ? 0 : label_ends_[document - 1];
    return {labels_.data() + begin, label_ends_[document] - begin};
  }

  std::uint64_t generation_;
  Index index_;
  RecentPairs pairs_;
  // By document. The last may be under way; then it has no end yet.
  PodVector<std::size_t> ends_;  // position of the separator behind it, in the index's text
  PodVector<std::int64_t> times_;
  PodVector<std::size_t> label_ends_;
  PodVector<char> labels_;
};

}  // namespace draftd
