#include "draft/evidence.h"

#include <algorithm>

namespace draftd {
namespace {

bool likelier(const Continuation& a, const Continuation& b) {
  return a.count != b.count ? a.count > b.count : a.last > b.last;
}

// Keeps the likeliest followers, in order; returns how many.
std::uint32_t rank(std::span<const Continuation> followers, std::span<Continuation, Level::kFollowers> ranked) {
  std::uint32_t count = 0;
  for (const Continuation& follower : followers) {
    if (count == ranked.size()) {
      if (!likelier(follower, ranked[count - 1])) continue;
      --count;
    }
    std::uint32_t place = count++;
    for (; place > 0 && likelier(follower, ranked[place - 1]); --place) ranked[place] = ranked[place - 1];
    ranked[place] = follower;
  }
  return count;
}

}  // namespace

double trust(std::uint32_t reach, std::uint32_t furthest) {
  const double share = (1.0 + reach / static_cast<double>(kReach)) / (1.0 + furthest / static_cast<double>(kReach));
  return share * share;
}

Contexts::Contexts(std::span<const DraftSource> sources, std::span<const Cursor> cursors) : sources_(sources) {
  std::copy(cursors.begin(), cursors.end(), walk_.begin());
}

bool Contexts::next(Level& level) {
  while (true) {
    const auto trusted_length = [&](std::size_t i) { return walk_[i].length * sources_[i].trust; };
    std::size_t longest = 0;
    for (std::size_t i = 1; i < sources_.size(); ++i) {
      if (trusted_length(i) > trusted_length(longest)) longest = i;
    }
    const double length = trusted_length(longest);
    const Cursor cursor = walk_[longest];
    if (cursor.length == 0) return false;
    const Index& index = *sources_[longest].index;
    walk_[longest] = index.shorter(cursor);
    const std::uint32_t degree = index.degree(cursor.state);
    if (degree < 1 || degree > kWidest) continue;

    std::array<Continuation, kWidest> buffer;
    const std::span<Continuation> followers(buffer.data(), degree);
    index.continuations(cursor.state, followers);
    level.source = sources_[longest].kind;
    level.length = length;
    level.distinct = degree;
    level.total = 0;
    for (const Continuation& follower : followers) level.total += follower.count;
    level.ranked = rank(followers, level.followers);
    return true;
  }
}

}  // namespace draftd
