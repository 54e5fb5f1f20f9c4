#include "draft/evidence.h"

#include <algorithm>
#include <bit>

namespace draftd {
namespace {

bool likelier(const Level::Follower& a, const Level::Follower& b) {
  return a.count != b.count ? a.count > b.count : a.last > b.last;
}

// By how many tokens ago it was seen last. Generations of text told apart by it
// gain 0.3 % of emitted tokens.
std::uint32_t recency(bool own, std::uint32_t ago) {
  if (ago < (own ? 200U : 2000U)) return 1;
  return !own && ago < 20000 ? 2 : 0;
}

cells::Origin shared_origin(Source source) {
  if (source == Source::kSharedHistory) return cells::Origin::kHistory;
  return source == Source::kGroupHistory ? cells::Origin::kGroup : cells::Origin::kCorpus;
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

Contexts::Contexts(const DraftWish& wish, std::span<const Cursor> cursors, std::span<SealedText> texts,
                   std::span<const Agreeing> agreeing, std::uint32_t depth)
    : live_(wish.live),
      sealed_(wish.sealed),
      prompt_(wish.prompt),
      texts_(texts),
      agreeing_(agreeing),
      depth_(depth),
      sources_(live_.size() + sealed_.size()) {
  for (std::size_t i = 0; i < live_.size(); ++i) {
    walks_[i] = {static_cast<double>(cursors[i].length), cursors[i].state, cursors[i].length};
  }
  for (std::size_t i = 0; i < sealed_.size(); ++i) {
    walks_[live_.size() + i].tokens = 0;
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
  const bool own = level.source == Source::kOwnText;
  const auto end = static_cast<std::uint32_t>(index.text().size());
  std::uint32_t latest = 0;
  for (const Continuation& follower : followers) {
    level.total += follower.count;
    if (follower.last >= latest) {
      latest = follower.last;
      level.latest = follower.token;
    }
    rank({follower.token, follower.count, follower.last, recency(own, end - follower.last)}, level);
  }
  const cells::Origin own_origin = latest > prompt_ ? cells::Origin::kOutput : cells::Origin::kPrompt;
  level.origin = own ? own_origin : shared_origin(level.source);
  return true;
}

bool Contexts::read_sealed(std::size_t source, Level& level) {
  SealedText& text = texts_[source];
  Agreeing left = agreeing_[source] & ((1U << walks_[live_.size() + source].tokens) - 1);
  const SealedText::Followers& followers = text.followers(depth_, left);
  level.source = sealed_[source].kind;
  level.origin = shared_origin(level.source);
  level.distinct = 0;
  std::uint32_t latest = 0;
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
    const auto token = static_cast<Token>(symbol - 1);
    if (last >= latest) {
      latest = last;
      level.latest = token;
    }
    rank({token, count, last, 0}, level);
  }
  lengthen(source);
  return level.distinct > 0;
}

}  // namespace draftd
