#include "draft/evidence.h"

#include <algorithm>

namespace draftd {
namespace {

bool likelier(const Continuation& a, const Continuation& b) {
  return a.count != b.count ? a.count > b.count : a.last > b.last;
}

// Keeps the likeliest of a level's followers, in order.
std::uint32_t rank(std::span<const Continuation> followers, std::span<Continuation, Evidence::kFollowers> ranked) {
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

void add_level(const DraftSource& source, Cursor cursor, std::uint32_t degree, Evidence& evidence) {
  std::array<Continuation, Evidence::kWidest> buffer;
  const std::span<Continuation> followers(buffer.data(), degree);
  source.index->continuations(cursor.state, followers);
  const std::size_t number = evidence.level_count++;
  Level& level = evidence.levels[number];
  level = {source.kind, cursor.length, 0, degree, rank(followers, evidence.followers[number])};
  for (const Continuation& follower : followers) level.total += follower.count;
}

}  // namespace

void gather(std::span<const DraftSource> sources, std::span<const Cursor> cursors, Evidence& evidence) {
  evidence.level_count = 0;
  std::array<Cursor, kMaxSources> walk;
  std::copy(cursors.begin(), cursors.end(), walk.begin());
  while (evidence.level_count < Evidence::kLevels) {
    std::size_t longest = 0;
    for (std::size_t i = 1; i < sources.size(); ++i) {
      if (walk[i].length > walk[longest].length) longest = i;
    }
    if (walk[longest].length == 0) return;
    const Index& index = *sources[longest].index;
    const std::uint32_t degree = index.degree(walk[longest].state);
    if (degree >= 1 && degree <= Evidence::kWidest) {
      add_level(sources[longest], walk[longest], degree, evidence);
    }
    walk[longest] = index.shorter(walk[longest]);
  }
}

}  // namespace draftd
