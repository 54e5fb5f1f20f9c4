// N-gram lookup, the plainest draft source: of the endings of a text that
// occurred in it before, the longest; and what followed it there.
//
// Two forms of one answer. `ngram_continuation` reads the whole text once.
// `NgramText` keeps where each n-gram stood and reads only what is new: for
// each token as many table entries as there are lengths, whatever the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "draftd/types.h"

namespace draftd {

// Which n-grams are looked for, and which of their occurrences counts.
struct NgramRule {
  // Throws std::invalid_argument unless 1 <= shortest <= longest <= kMaxMatch.
  NgramRule(std::uint32_t shortest_gram, std::uint32_t longest_gram, bool newest_counts);

  std::uint32_t shortest;
  std::uint32_t longest;
  bool newest;  // of several occurrences of the longest n-gram; otherwise the earliest
};

// At most `most` tokens behind the occurrence; empty where no ending occurred before.
std::span<const Token> ngram_continuation(std::span<const Token> text, const NgramRule& rule, std::size_t most);

// One text, which grows.
class NgramText {
 public:
  explicit NgramText(const NgramRule& rule);
  ~NgramText();
  NgramText(NgramText&&) noexcept;
  NgramText& operator=(NgramText&&) noexcept;

  // From position `start` <= size() on, the text is `tokens`, and ends with them.
  // What is known of it is only compared; where something is taken back, all
  // n-grams are entered anew.
  void put(std::size_t start, std::span<const Token> tokens);
  // As ngram_continuation of the text; valid until the next put().
  std::span<const Token> continuation(std::size_t most) const;
  std::size_t size() const;
  std::size_t memory_size() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

// Rows of a batch: of each request, what is new of its text.
struct NgramBatch {
  std::span<const std::uint64_t> request;
  std::span<const std::uint32_t> start;  // position in the request's text
  std::span<const std::uint32_t> token_end;
  std::span<const Token> tokens;
  std::span<const std::uint32_t> most;  // nodes of each row
};

struct NgramChains {
  std::vector<std::uint32_t> node_end;
  std::vector<Token> tokens;
};

// The texts of many requests. Not to be used from two threads at once.
class NgramTexts {
 public:
  explicit NgramTexts(const NgramRule& rule);
  ~NgramTexts();

  // Takes each row's tokens, then drafts for it. Throws std::invalid_argument,
  // and takes nothing, when a row starts behind the text that is known, or two
  // are of one request.
  void propose(const NgramBatch& batch, NgramChains& chains);
  void forget(std::span<const std::uint64_t> requests);
  std::size_t memory_size() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
