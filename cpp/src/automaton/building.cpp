// Building the automaton, one token at a time (Blumer et al. 1985).
#include <algorithm>

#include "automaton/storage.h"

namespace draftd {

void Index::Storage::open_document() {
  text.push_back(kSeparator);
  prefix_link.push_back(kRoot);
  tail = kRoot;
  ++documents;
}

void Index::Storage::add_edge(State from, Edge edge) {
  Branching& state = branching[number(from)];
  ++edges;
  if (state.degree == 0) {
    state.edge = edge;
    state.degree = 1;
    return;
  }
  if (state.degree == EdgeArena::limit(state.capacity) || state.capacity == 0) {
    const std::uint32_t capacity = EdgeArena::capacity_after(state.capacity);
    const std::uint32_t offset = arena.allocate(capacity);
    if (state.capacity == 0) {
      arena.insert(offset, capacity, 0, state.edge);
    } else {
      std::uint32_t moved = 0;
      const std::uint32_t slots = state.capacity <= EdgeArena::kLargestList ? state.degree : state.capacity;
      for (std::uint32_t i = 0; i < slots; ++i) {
        const Edge old = arena.block(state.edge.target)[i];
        if (old.token != kNoToken) arena.insert(offset, capacity, moved++, old);
      }
      arena.release(state.edge.target, state.capacity);
    }
    state.capacity = capacity;
    state.edge = {kNoToken, offset};
  }
  arena.insert(state.edge.target, state.capacity, state.degree, edge);
  ++state.degree;
}

// Gives the branching state `to` the followers of `from`.
void Index::Storage::copy_edges(State from, Branching& to) {
  to.degree = 0;
  to.capacity = 0;
  to.edge = {kNoToken, 0};
  if (is_prefix(from)) {
    if (text[from] != kSeparator) {
      to.edge = {text[from], from + 1};
      to.degree = 1;
    }
  } else {
    const Branching& source = branching[number(from)];
    to.degree = source.degree;
    to.edge = source.edge;
    if (source.capacity != 0) {
      to.capacity = source.capacity;
      const std::uint32_t offset = arena.allocate(source.capacity);
      std::copy_n(arena.block(source.edge.target), source.capacity, arena.block(offset));
      to.edge.target = offset;
    }
  }
  edges += to.degree;
}

// `through` leads by `token` to `target`, which also has longer contexts:
// splits off a state for those as short as through's context plus the token.
State Index::Storage::split(State through, Token token, State target) {
  Branching created{};
  created.length = length(through) + 1;
  created.link = link(target);
  if (is_prefix(target)) {
    created.count = 1;
    created.last = target;
  } else {
    created.count = branching[number(target)].count;
    created.last = branching[number(target)].last;
  }
  copy_edges(target, created);
  const State state = kBranching | static_cast<State>(branching.size());
  branching.push_back(created);

  for (State from = through; from != kNone; from = link(from)) {
    Edge* edge = find(branching[number(from)], token);
    if (edge->target != target) break;
    edge->target = state;
  }
  if (is_prefix(target)) {
    prefix_link[target] = state;
  } else {
    branching[number(target)].link = state;
  }
  return state;
}

void Index::Storage::push(Token token) {
  State from = link(last());
  text.push_back(token);
  const State created = last();
  prefix_link.push_back(kRoot);

  State next = kNone;
  for (; from != kNone; from = link(from)) {
    const Edge* edge = find(branching[number(from)], token);
    if (edge != nullptr) {
      next = edge->target;
      break;
    }
    add_edge(from, {token, created});
  }
  if (next != kNone) {
    // A prefix state always has longer contexts: it holds a whole prefix.
    const bool exact = !is_prefix(next) && length(next) == length(from) + 1;
    prefix_link[created] = exact ? next : split(from, token, next);
  }
  count_occurrences(created, token);
}

// Of the contexts the tail's state stands for, keeps those at most kCounted long.
void Index::Storage::shorten_tail() {
  while (tail != kRoot && length(link(tail)) >= kCounted) tail = link(tail);
}

void Index::Storage::count_occurrences(State created, Token token) {
  const State repeated = prefix_link[created];
  if (length(repeated) <= kCounted) {
    tail = repeated;
  } else {
    // Following links from the longest repeat down to kCounted could take
    // as long as the text; the last tail is one step away.
    shorten_tail();
    tail = target(tail, token);
    shorten_tail();
  }
  std::uint32_t token_count = 1;
  for (State state = tail; state != kRoot;) {
    Branching& record = branching[number(state)];
    token_count = ++record.count;
    record.last = created;
    state = record.link;
  }
  Branching& root = branching[0];
  ++root.count;
  root.last = created;
  frequent.count(token, token_count);
}

}  // namespace draftd
