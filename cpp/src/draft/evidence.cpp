#include "draft/evidence.h"

#include <algorithm>

namespace draftd {
namespace {

bool likelier(const Continuation& a, const Continuation& b) {
  return a.count != b.count ? a.count > b.count : a.last > b.last;
}

void add_level(const DraftSource& source, Cursor cursor, std::uint32_t degree, Evidence& evidence) {
  std::array<Continuation, Evidence::kWidest> followers;
  source.index->continuations(cursor.state, followers);
  Level& level = evidence.levels[evidence.level_count];
  level = {source.kind, cursor.length, 0, degree,
           static_cast<std::uint32_t>(evidence.level_count * Evidence::kFollowers),
           std::min<std::uint32_t>(degree, Evidence::kFollowers)};
  for (std::uint32_t i = 0; i < degree; ++i) level.total += followers[i].count;
  std::partial_sort_copy(followers.begin(), followers.begin() + degree, &evidence.followers[level.first],
                         &evidence.followers[level.first] + level.count, likelier);
  ++evidence.level_count;
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
