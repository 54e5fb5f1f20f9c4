// What running requests have generated, for others to draft from before it is
// finished and enters the history.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "draftd/index.h"
#include "draftd/types.h"

namespace draftd {

struct SessionEntry;

// Memory that nothing refers to any more once the lock is let go: freed then, not under it.
using Freed = std::vector<std::shared_ptr<const void>>;

// How much of a request is in a flight.
struct Flown {
  std::size_t until = 0;   // of its text, what is before this position; the prompt is never in it
  std::size_t tokens = 0;  // of its documents there
};

// A live index of pieces: each some new tokens of one request, behind the few
// that come before them. An automaton only grows, so the text of a request that
// left stays in it, dead. That counts twice what the history has by then, and
// drafts get worse by it, so a flight with much of it is emptied and given the
// running requests' text anew.
class Flight {
 public:
  // New tokens that are worth a piece. With 16, siblings win a third less on code.
  static constexpr std::size_t kPiece = 8;
  // Tokens before them that go along, for matches to have context. More are
  // counted twice to no use.
  static constexpr std::size_t kOverlap = 8;

  // Adds a piece of a request, which is in the flight up to `until` now.
  void add(SessionEntry& entry, std::span<const Token> piece, std::size_t until);
  // What the flight has of a request is dead from now on.
  void leave(SessionEntry& entry);
  // Drops all text and returns whose it was.
  std::vector<SessionEntry*> empty(Freed& freed);

  // Whether there is text of another request.
  bool has_others(const SessionEntry& entry) const;
  std::size_t dead_tokens() const { return index_->tokens() - living_; }
  // Emptying at an eighth costs each generated token eight times its indexing,
  // behind the steps; at a half, siblings win a tenth less.
  bool is_mostly_dead() const { return dead_tokens() * 8 > index_->tokens(); }
  const Index& index() const { return *index_; }
  // For who reads on without the lock, under which it grows.
  std::shared_ptr<const Index> held_index() const { return index_; }
  std::size_t memory_size() const { return index_->memory_size() + aboard_.capacity() * sizeof(SessionEntry*); }

 private:
  std::shared_ptr<Index> index_ = std::make_shared<Index>();
  std::size_t living_ = 0;             // tokens
  std::vector<SessionEntry*> aboard_;  // those with text in it, in the order in which they came
};

}  // namespace draftd
