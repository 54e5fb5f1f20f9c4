// Plain documents and a look at every position: what the automaton must agree with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <vector>

#include "draftd/index.h"
#include "draftd/types.h"

namespace draftd::testing {

struct Follower {
  Token token;
  std::uint32_t count;
  std::uint32_t last;

  bool operator==(const Follower&) const = default;
};

// What follows the suffixes of a context that end at the same places, named by the longest of them.
struct Level {
  std::uint32_t length;
  std::vector<Follower> followers;  // most frequent first, then most recent

  bool operator==(const Level&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Level& level) {
  out << "length " << level.length << ":";
  for (const Follower& follower : level.followers) {
    out << " " << follower.token << " x" << follower.count << " @" << follower.last;
  }
  return out;
}

inline void sort_followers(std::vector<Follower>& followers) {
  std::sort(followers.begin(), followers.end(), [](const Follower& a, const Follower& b) {
    return a.count != b.count ? a.count > b.count : a.last > b.last;
  });
}

class BruteForce {
 public:
  void append(std::span<const Token> tokens) { text_.insert(text_.end(), tokens.begin(), tokens.end()); }
  void end_document() {
    if (text_.back() != kSeparator) text_.push_back(kSeparator);
  }

  // Levels of `context` that occur at least `least` times, and the empty one.
  std::vector<Level> levels(std::span<const Token> context, std::size_t least = 1) const {
    std::vector<Level> levels;
    std::vector<std::size_t> ends = all_ends();
    const std::size_t limit = std::min<std::size_t>(context.size(), kMaxMatch);
    for (std::size_t length = 0;; ++length) {
      std::vector<std::size_t> longer;
      if (length < limit) longer = preceded(ends, length, context[context.size() - 1 - length]);
      if (longer.size() < least) longer.clear();
      if (longer.size() < ends.size()) levels.push_back({static_cast<std::uint32_t>(length), followers(ends)});
      if (longer.empty()) break;
      ends = longer;
    }
    std::reverse(levels.begin(), levels.end());
    return levels;
  }

  std::vector<Token> open_document() const {
    const auto separator = std::find(text_.rbegin(), text_.rend(), kSeparator);
    return {separator.base(), text_.end()};
  }

 private:
  static constexpr Token kSeparator = -1;

  std::vector<std::size_t> all_ends() const {
    std::vector<std::size_t> ends;
    for (std::size_t end = 1; end <= text_.size(); ++end) ends.push_back(end);
    return ends;
  }

  // Those of `ends` (of a string of `length` tokens) where `token` stands before the string.
  std::vector<std::size_t> preceded(const std::vector<std::size_t>& ends, std::size_t length, Token token) const {
    std::vector<std::size_t> longer;
    for (const std::size_t end : ends) {
      if (end > length && text_[end - length - 1] == token) longer.push_back(end);
    }
    return longer;
  }

  std::vector<Follower> followers(const std::vector<std::size_t>& ends) const {
    std::map<Token, Follower> seen;
    for (const std::size_t end : ends) {
      if (end == text_.size() || text_[end] == kSeparator) continue;
      Follower& follower = seen.try_emplace(text_[end], Follower{text_[end], 0, 0}).first->second;
      ++follower.count;
      follower.last = static_cast<std::uint32_t>(end);
    }
    std::vector<Follower> followers;
    for (const auto& [token, follower] : seen) followers.push_back(follower);
    sort_followers(followers);
    return followers;
  }

  std::vector<Token> text_{kSeparator};
};

// The levels at `cursor` and at all shorter contexts, as the automaton tells them.
inline std::vector<Level> levels(const Index& index, Cursor cursor) {
  std::vector<Level> levels;
  for (;; cursor = index.shorter(cursor)) {
    std::vector<Continuation> continuations(index.degree(cursor.state));
    index.continuations(cursor.state, continuations);
    Level level{cursor.length, {}};
    for (const Continuation& seen : continuations) level.followers.push_back({seen.token, seen.count, seen.last});
    sort_followers(level.followers);
    levels.push_back(level);
    if (cursor.state == kRoot) return levels;
  }
}

}  // namespace draftd::testing
