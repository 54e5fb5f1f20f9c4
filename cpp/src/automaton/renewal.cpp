#include "automaton/renewal.h"

#include <algorithm>
#include <cstddef>

namespace draftd {
namespace {

// Matching anew misses the cache for every token of the match; reading so many
// tokens in a row takes no longer.
constexpr std::size_t kReadable = 2048;

// Whether `wanted` ends at that position of a text. A text begins with a
// separator, which is no token: the comparison ends there at the latest.
bool ends_at(std::span<const Token> text, std::size_t position, std::span<const Token> wanted) {
  std::size_t left = wanted.size();
  for (; left > 0 && text[position] == wanted[left - 1]; --position) --left;
  return left == 0;
}

// Whether it ends at that position or a later one.
bool ends_from(std::span<const Token> text, std::size_t position, std::span<const Token> wanted) {
  constexpr std::size_t kBlock = 32;
  for (; position + kBlock <= text.size(); position += kBlock) {
    std::uint32_t last_tokens = 0;  // counted without a branch for each
    for (std::size_t i = 0; i < kBlock; ++i) last_tokens += text[position + i] == wanted.back() ? 1 : 0;
    for (std::size_t i = 0; last_tokens > 0 && i < kBlock; ++i) {
      if (ends_at(text, position + i, wanted)) return true;
    }
  }
  for (; position < text.size(); ++position) {
    if (ends_at(text, position, wanted)) return true;
  }
  return false;
}

}  // namespace

// A match that is longer by any number is also longer by one.
Cursor renewed(const Index& index, Cursor cursor, std::span<const Token> context, std::uint32_t version) {
  if (cursor.length < std::min<std::size_t>(kMaxMatch, context.size())) {
    const std::span<const Token> longer = context.last(cursor.length + 1);
    if (index.version() - version > kReadable) {
      const Cursor probe = index.match(longer);
      return probe.length < longer.size() ? probe : index.match(context);
    }
    if (ends_from(index.text(), version, longer)) return index.match(context);
  }
  // Of the contexts of one state, the shorter ones may have one of their own by now.
  while (cursor.length > 0) {
    const Cursor shorter = index.shorter(cursor);
    if (shorter.length < cursor.length) break;
    cursor.state = shorter.state;
  }
  return cursor;
}

}  // namespace draftd
