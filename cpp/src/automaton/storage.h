// What an index is made of; the construction is in building.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "automaton/edge_arena.h"
#include "automaton/frequent_tokens.h"
#include "draftd/index.h"
#include "support/identity.h"
#include "support/pod_vector.h"

namespace draftd {

inline constexpr Token kSeparator = -1;
inline constexpr std::uint32_t kCounted = kMaxMatch + 1;  // a context of kMaxMatch tokens and its follower
inline constexpr State kNone = UINT32_MAX;                // the root's suffix link

inline bool is_prefix(State state) { return (state & kBranching) == 0; }
inline std::uint32_t number(State state) { return state & ~kBranching; }

// A branching state. With one follower (capacity 0) the edge is stored here;
// with more, `edge.target` is the offset of their block in the arena.
struct Branching {
  std::uint32_t length;  // of the longest context of the state
  State link;            // the longest shorter context with more occurrences
  std::uint32_t count;   // occurrences; exact where the link is shorter than kCounted
  std::uint32_t last;    // end of the last occurrence
  std::uint32_t degree;
  std::uint32_t capacity;
  Edge edge;
};
static_assert(sizeof(Branching) == 32);

struct Index::Storage {
  // Position p of the text leads from prefix state p to prefix state p + 1.
  PodVector<Token> text;
  PodVector<State> prefix_link;  // by prefix state; entry 0 is unused
  PodVector<Branching> branching;
  EdgeArena arena;
  FrequentTokens frequent;
  std::uint64_t identity = next_identity();
  State tail = kRoot;  // state of the longest repeated suffix, at most kCounted long
  std::size_t documents = 0;
  std::size_t edges = 0;

  State last() const { return static_cast<State>(text.size()); }
  std::uint32_t length(State state) const { return is_prefix(state) ? state : branching[number(state)].length; }
  State link(State state) const { return is_prefix(state) ? prefix_link[state] : branching[number(state)].link; }

  void open_document();
  void push(Token token);

  const Edge* find(const Branching& from, Token token) const;
  Edge* find(Branching& from, Token token) {
    return const_cast<Edge*>(std::as_const(*this).find(std::as_const(from), token));
  }
  State target(State from, Token token) const;
  void add_edge(State from, Edge edge);
  State split(State through, Token token, State target);
  void copy_edges(State from, Branching& to);
  void count_occurrences(State created, Token token);
  void shorten_tail();
};

inline const Edge* Index::Storage::find(const Branching& from, Token token) const {
  if (from.capacity == 0) return from.degree == 1 && from.edge.token == token ? &from.edge : nullptr;
  return arena.find(from.edge.target, from.capacity, from.degree, token);
}

inline State Index::Storage::target(State from, Token token) const {
  if (is_prefix(from)) return from < text.size() && text[from] == token ? from + 1 : kNone;
  const Edge* edge = find(branching[number(from)], token);
  return edge == nullptr ? kNone : edge->target;
}

}  // namespace draftd
