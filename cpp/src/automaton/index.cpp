#include "draftd/index.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "automaton/edge_arena.h"
#include "automaton/frequent_tokens.h"
#include "support/pod_vector.h"

namespace draftd {
namespace {

constexpr Token kSeparator = -1;
constexpr std::uint32_t kCounted = kMaxMatch + 1;  // a context of kMaxMatch tokens and its follower
constexpr State kNone = UINT32_MAX;                // the root's suffix link
constexpr std::size_t kMaxPositions = (std::size_t{1} << 31) - 2;

std::atomic<std::uint64_t> next_identity{0};

bool is_prefix(State state) { return (state & kBranching) == 0; }
std::uint32_t number(State state) { return state & ~kBranching; }

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

}  // namespace

struct Index::Storage {
  // Position p of the text leads from prefix state p to prefix state p + 1.
  PodVector<Token> text;
  PodVector<State> prefix_link;  // by prefix state; entry 0 is unused
  PodVector<Branching> branching;
  EdgeArena arena;
  FrequentTokens frequent;
  std::uint64_t identity = next_identity.fetch_add(1, std::memory_order_relaxed);
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

void Index::Storage::open_document() {
  text.push_back(kSeparator);
  prefix_link.push_back(kRoot);
  tail = kRoot;
  ++documents;
}

const Edge* Index::Storage::find(const Branching& from, Token token) const {
  if (from.capacity == 0) return from.degree == 1 && from.edge.token == token ? &from.edge : nullptr;
  return arena.find(from.edge.target, from.capacity, from.degree, token);
}

State Index::Storage::target(State from, Token token) const {
  if (is_prefix(from)) return from < text.size() && text[from] == token ? from + 1 : kNone;
  const Edge* edge = find(branching[number(from)], token);
  return edge == nullptr ? kNone : edge->target;
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

Index::Index() : storage_(std::make_unique<Storage>()) {
  storage_->prefix_link.push_back(kNone);
  storage_->branching.push_back({0, kNone, 0, 0, 0, 0, {kNoToken, 0}});
  storage_->open_document();
}
Index::~Index() = default;
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;

void Index::append(std::span<const Token> tokens) {
  Storage& s = *storage_;
  for (const Token token : tokens) {
    if (s.text.size() >= kMaxPositions) throw std::length_error("index: full at 2^31 - 2 positions");
    s.push(token);
  }
}

void Index::end_document() {
  Storage& s = *storage_;
  if (s.text.back() != kSeparator) s.open_document();
}

Cursor Index::advance(Cursor cursor, Token token) const {
  const Storage& s = *storage_;
  State next = s.target(cursor.state, token);
  while (next == kNone) {
    if (cursor.state == kRoot) return {};
    cursor.state = s.link(cursor.state);
    cursor.length = s.length(cursor.state);
    next = s.target(cursor.state, token);
  }
  cursor.state = next;
  if (cursor.length < kMaxMatch) {
    ++cursor.length;
  }
  while (s.length(s.link(cursor.state)) >= cursor.length) cursor.state = s.link(cursor.state);
  return cursor;
}

Cursor Index::match(std::span<const Token> context) const {
  Cursor cursor;
  const std::size_t first = context.size() > kMaxMatch ? context.size() - kMaxMatch : 0;
  for (const Token token : context.subspan(first)) cursor = advance(cursor, token);
  return cursor;
}

Cursor Index::tail() const {
  const Storage& s = *storage_;
  Cursor cursor{s.tail, std::min(s.length(s.link(s.last())), kMaxMatch)};
  while (cursor.state != kRoot && s.length(s.link(cursor.state)) >= kMaxMatch) cursor.state = s.link(cursor.state);
  return cursor;
}

Cursor Index::shorter(Cursor cursor) const {
  const State link = storage_->link(cursor.state);
  return {link, storage_->length(link)};
}

std::uint32_t Index::degree(State state) const {
  const Storage& s = *storage_;
  if (is_prefix(state)) return state < s.text.size() && s.text[state] != kSeparator ? 1 : 0;
  return s.branching[number(state)].degree;
}

void Index::continuations(State state, std::span<Continuation> into) const {
  const Storage& s = *storage_;
  if (is_prefix(state)) {
    if (degree(state) == 1) into[0] = {s.text[state], 1, state, state + 1};
    return;
  }
  const Branching& from = s.branching[number(state)];
  std::size_t written = 0;
  const auto write = [&](Edge edge) {
    if (is_prefix(edge.target)) {
      into[written++] = {edge.token, 1, edge.target - 1, edge.target};
    } else {
      const Branching& to = s.branching[number(edge.target)];
      into[written++] = {edge.token, to.count, to.last - 1, edge.target};
    }
  };
  if (from.capacity == 0) {
    if (from.degree == 1) write(from.edge);
    return;
  }
  const Edge* edges = s.arena.block(from.edge.target);
  const std::uint32_t slots = from.capacity <= EdgeArena::kLargestList ? from.degree : from.capacity;
  for (std::uint32_t i = 0; i < slots; ++i) {
    if (edges[i].token != kNoToken) write(edges[i]);
  }
}

void Index::prefetch_edges(State state) const {
  const Storage& s = *storage_;
  if (is_prefix(state)) return;
  const Branching& from = s.branching[number(state)];
  if (from.capacity != 0) __builtin_prefetch(s.arena.block(from.edge.target));
}

std::span<const FrequentToken> Index::frequent_tokens() const { return storage_->frequent.ranked(); }
std::uint64_t Index::identity() const { return storage_->identity; }
std::uint32_t Index::version() const { return static_cast<std::uint32_t>(storage_->text.size()); }
std::size_t Index::tokens() const { return storage_->text.size() - storage_->documents; }
std::size_t Index::states() const { return storage_->text.size() + storage_->branching.size(); }
std::size_t Index::edges() const { return storage_->edges; }

std::size_t Index::documents() const {
  const Storage& s = *storage_;
  return s.documents - (s.text.back() == kSeparator ? 1 : 0);
}

std::size_t Index::memory_size() const {
  const Storage& s = *storage_;
  return sizeof(Index) + sizeof(Storage) + s.text.memory_size() + s.prefix_link.memory_size() +
         s.branching.memory_size() + s.arena.memory_size();
}

void Index::check_integrity() const {
  const Storage& s = *storage_;
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw IntegrityError("index: " + what);
  };
  require(s.prefix_link.size() == s.text.size() + 1, "one link per prefix state");
  for (State state = 1; state < s.prefix_link.size(); ++state) {
    const State link = s.prefix_link[state];
    require(!is_prefix(link) && number(link) < s.branching.size(),
            "link of prefix state " + std::to_string(state) + " leads to a branching state");
  }
  std::size_t edges = 0;
  std::vector<Continuation> followers;
  for (std::uint32_t i = 0; i < s.branching.size(); ++i) {
    const Branching& state = s.branching[i];
    const std::string name = "branching state " + std::to_string(i);
    require((state.link == kNone) == (i == 0), name + " has a link unless it is the root");
    const std::uint32_t shorter = i == 0 ? 0 : s.length(state.link);
    require(i == 0 || shorter < state.length, name + " is longer than its link");
    require(state.last < s.text.size() + 1, name + " last occurred inside the text");
    require(state.degree <= EdgeArena::limit(std::max(state.capacity, 1U)), name + " has room for its edges");
    edges += state.degree;

    followers.resize(state.degree);
    continuations(kBranching | i, followers);
    std::uint64_t followed = 0;
    for (const Continuation& follower : followers) {
      require(follower.target != 0 && s.length(follower.target) > state.length,
              name + " leads by " + std::to_string(follower.token) + " to a longer context");
      require(s.target(kBranching | i, follower.token) == follower.target,
              name + " finds its edge by " + std::to_string(follower.token));
      followed += follower.count;
    }
    if (shorter < kMaxMatch) {
      require(followed <= state.count, name + " is followed no more often than it occurs");
      require(i == 0 || state.count <= s.branching[number(state.link)].count, name + " is rarer than its link");
    }
  }
  require(edges == s.edges, "number of edges");
}

}  // namespace draftd
