#include "draftd/index.h"

#include <algorithm>
#include <stdexcept>

#include "automaton/storage.h"

namespace draftd {
namespace {

constexpr std::size_t kMaxPositions = (std::size_t{1} << 31) - 2;

}  // namespace

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
std::span<const Token> Index::text() const { return {storage_->text.data(), storage_->text.size()}; }
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

}  // namespace draftd
