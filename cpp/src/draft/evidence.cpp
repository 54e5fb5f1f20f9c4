#include "draft/evidence.h"

#include <algorithm>
#include <bit>

namespace draftd {
namespace {

bool likelier(const Level::Follower& a, const Level::Follower& b) {
  return a.count != b.count ? a.count > b.count : a.last > b.last;
}

// Keeps the likeliest followers of the level, in order.
void rank(const Level::Follower& follower, Level& level) {
  std::uint32_t place = level.ranked;
  if (place == Level::kFollowers) {
    --place;
    if (!likelier(follower, level.followers[place])) return;
  } else {
    ++level.ranked;
  }
  for (; place > 0 && likelier(follower, level.followers[place - 1]); --place) {
    level.followers[place] = level.followers[place - 1];
  }
  level.followers[place] = follower;
}

}  // namespace

Contexts::Contexts(std::span<const LiveSource> live, std::span<const Cursor> cursors,
                   std::span<const SealedSource> sealed, std::span<SealedText> texts,
                   std::span<const Agreeing> agreeing, std::uint32_t depth)
    : live_(live),
      sealed_(sealed),
      texts_(texts),
      agreeing_(agreeing),
      depth_(depth),
      sources_(live.size() + sealed.size()) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    walks_[i] = {static_cast<double>(cursors[i].length), cursors[i].state, cursors[i].length};
  }
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    walks_[live.size() + i].tokens = 0;
    lengthen(i);
  }
}

// Takes the next longest occurrences of a sealed source into its context.
void Contexts::lengthen(std::size_t source) {
  Walk& walk = walks_[live_.size() + source];
  const Agreeing left = agreeing_[source] >> walk.tokens << walk.tokens;
  if (left == 0) {
    walk.length = 0.0;
    return;
  }
  const Occurrence& longest = texts_[source].occurrence(static_cast<std::uint32_t>(std::countr_zero(left)));
  walk.tokens = longest.end;
  walk.length = (longest.length + depth_) * sealed_[source].trust;
}

bool Contexts::next(Level& level) {
  while (true) {
    std::size_t longest = 0;
    for (std::size_t i = 1; i < sources_; ++i) {
      if (walks_[i].length > walks_[longest].length) longest = i;
    }
    if (sources_ == 0 || walks_[longest].length == 0.0) return false;
    level.length = walks_[longest].length;
    level.total = 0;
    level.ranked = 0;
    const bool found = longest < live_.size() ? read_live(longest, level) : read_sealed(longest - live_.size(), level);
    if (found) return true;
  }
}

bool Contexts::read_live(std::size_t source, Level& level) {
  const Index& index = *live_[source].index;
  Walk& walk = walks_[source];
  const State state = walk.state;
  const Cursor shorter = index.shorter({walk.state, walk.tokens});
  walk = {static_cast<double>(shorter.length), shorter.state, shorter.length};
  const std::uint32_t degree = index.degree(state);
  if (degree < 1 || degree > kWidest) return false;

  std::array<Continuation, kWidest> buffer;
  const std::span<Continuation> followers(buffer.data(), degree);
  index.continuations(state, followers);
  level.source = live_[source].kind;
  level.distinct = degree;
  for (const Continuation& follower : followers) {
    level.total += follower.count;
    rank({follower.token, follower.count, follower.last}, level);
  }
  return true;
}

bool Contexts::read_sealed(std::size_t source, Level& level) {
  SealedText& text = texts_[source];
  Agreeing left = agreeing_[source] & ((1U << walks_[live_.size() + source].tokens) - 1);
  const SealedText::Followers& followers = text.followers(depth_, left);
  level.source = sealed_[source].kind;
  level.distinct = 0;
  while (left != 0) {
    const std::uint32_t symbol = followers[static_cast<std::size_t>(std::countr_zero(left))];
    const Agreeing same = SealedText::followed_by(symbol, followers, left);
    left &= ~same;
    if (symbol == kSeparatorSymbol) continue;
    const auto count = static_cast<std::uint32_t>(std::popcount(same));
    std::uint32_t last = 0;
    for (Agreeing bits = same; bits != 0; bits &= bits - 1) {
      last = std::max(last, text.occurrence(static_cast<std::uint32_t>(std::countr_zero(bits))).age);
    }
    ++level.distinct;
    level.total += count;
    rank({static_cast<Token>(symbol - 1), count, last}, level);
  }
  lengthen(source);
  return level.distinct > 0;
}

}  // namespace draftd
