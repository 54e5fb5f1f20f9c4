// The live index: a suffix automaton over documents of tokens, built online,
// with exact occurrence counts and last positions.
//
// Compactness comes from one fact. Put a unique separator before every
// document; then the whole text read so far occurs exactly once, so the state
// of a prefix has one end position, one continuation and count 1: it needs no
// record, only its token and its suffix link (8 bytes). Records (32 bytes) are
// kept for branching states alone, the strings that occur in more than one
// left context (the "clones" of the textbook construction).
//
// Blumer et al., "The smallest automaton recognizing the subwords of a text",
// 1985, is the construction. Counting walks the suffix links of the appended
// position from depth kMaxMatch down, so it is bounded for any input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "draftd/types.h"

namespace draftd {

// A prefix state is its position (1, 2, ...); a branching state has the top bit set.
using State = std::uint32_t;
inline constexpr State kBranching = 1U << 31;
inline constexpr State kRoot = kBranching;

// A place in the automaton: the state of the last `length` tokens read.
struct Cursor {
  State state = kRoot;
  std::uint32_t length = 0;

  bool operator==(const Cursor&) const = default;
};

// One token that followed a context: how often, and where last.
struct Continuation {
  Token token;
  std::uint32_t count;
  std::uint32_t last;  // position just behind the follower's last occurrence
  State target;
};

struct FrequentToken {
  Token token;
  std::uint32_t count;
};

// A structure does not keep its own promises: a defect, or damaged memory.
struct IntegrityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Index {
 public:
  static constexpr std::size_t kFrequentTokens = 24;

  Index();
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  // Extends the open document. Ids must be >= 0. Throws std::length_error past
  // 2^31 - 2 positions; what fitted is indexed.
  void append(std::span<const Token> tokens);
  // The next token starts a new document: no match crosses the end.
  void end_document();

  // Cursor of the context read so far followed by `token`.
  Cursor advance(Cursor cursor, Token token) const;
  // Cursor of the longest suffix of `context` that occurs here, at most kMaxMatch.
  Cursor match(std::span<const Token> context) const;
  // Longest suffix of the open document that also occurs earlier, at most kMaxMatch.
  Cursor tail() const;
  // The next shorter context with more occurrences; not for the root.
  Cursor shorter(Cursor cursor) const;

  // Writes the followers of a context, in no order; `into` has room for degree(state).
  void continuations(State state, std::span<Continuation> into) const;
  // Number of different followers.
  std::uint32_t degree(State state) const;

  // A hint for lockstep batches: brings in what a state's followers are read from.
  void prefetch_edges(State state) const;

  // The most frequent tokens, most frequent first, ties to the more recent.
  std::span<const FrequentToken> frequent_tokens() const;
  // All that was appended, with a separator before each document; valid until more is.
  std::span<const Token> text() const;

  // Unlike any other index of this process; an address may be used again.
  std::uint64_t identity() const;
  // Changes whenever text is added: cursors made before may miss longer matches.
  std::uint32_t version() const;
  std::size_t tokens() const;
  std::size_t documents() const;
  std::size_t states() const;
  std::size_t edges() const;  // explicit ones, those of branching states
  std::size_t memory_size() const;
  // Verifies every invariant of the structure; throws IntegrityError naming the first violated one.
  void check_integrity() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
