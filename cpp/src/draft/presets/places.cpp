#include "draft/presets/places.h"

#include <algorithm>
#include <bit>

namespace draftd {
namespace {

// Adds up what several sources say of one token.
void merge(std::vector<Follower>& followers) {
  const auto together = [](const Follower& a, const Follower& b) {
    return a.token != b.token ? a.token < b.token : a.order < b.order;
  };
  std::sort(followers.begin(), followers.end(), together);
  std::size_t kept = 0;
  for (const Follower& follower : followers) {
    if (kept > 0 && followers[kept - 1].token == follower.token) {
      followers[kept - 1].count += follower.count;
    } else {
      followers[kept++] = follower;
    }
  }
  followers.resize(kept);
}

}  // namespace

void Places::begin(const DraftWish& wish, std::span<SealedText> texts, From from) {
  wish_ = &wish;
  texts_ = texts;
  suffixes_.clear();
  for (const LiveSource& source : wish.live) {
    const bool own = source.kind == Source::kOwnText;
    const bool read = from == From::kAll || own == (from == From::kOwnText);
    suffixes_.push_back(read ? source.cursor : Cursor{});
  }
  searched_.clear();
  for (const SealedText& text : texts) searched_.push_back(from == From::kOwnText ? 0 : text.all());
}

std::uint32_t Places::longest() const { return shorter(UINT32_MAX); }

std::uint32_t Places::shorter(std::uint32_t length) const {
  std::uint32_t longest = 0;
  for (std::size_t i = 0; i < suffixes_.size(); ++i) {
    Cursor cursor = suffixes_[i];
    while (cursor.length >= length) cursor = wish_->live[i].index->shorter(cursor);
    longest = std::max(longest, cursor.length);
  }
  for (std::size_t i = 0; i < searched_.size(); ++i) {
    for (Agreeing left = searched_[i]; left != 0; left &= left - 1) {
      const std::uint32_t here = texts_[i].occurrence(static_cast<std::uint32_t>(std::countr_zero(left))).length;
      if (here < length) longest = std::max(longest, here);
    }
  }
  return longest;
}

Places::Place Places::suffix(std::uint32_t length) {
  spots_.assign(1, {length, 0});
  cursors_.clear();
  agreeing_.clear();
  for (std::size_t i = 0; i < suffixes_.size(); ++i) {
    const Index& index = *wish_->live[i].index;
    Cursor& cursor = suffixes_[i];
    while (cursor.length > length) {
      const Cursor shorter = index.shorter(cursor);
      if (shorter.length < length) break;
      cursor = shorter;
    }
    cursors_.push_back(cursor.length >= length ? Cursor{cursor.state, length} : Cursor{});
  }
  for (std::size_t i = 0; i < searched_.size(); ++i) {
    Agreeing agreeing = 0;
    for (Agreeing left = searched_[i]; left != 0; left &= left - 1) {
      const auto number = static_cast<std::uint32_t>(std::countr_zero(left));
      if (texts_[i].occurrence(number).length >= length) agreeing |= left & -left;
    }
    agreeing_.push_back(agreeing);
  }
  return 0;
}

Places::Place Places::below(Place place, Token token) {
  const auto added = static_cast<Place>(spots_.size());
  const Spot above = spots_[place];
  const std::uint32_t length = std::min(above.length + 1, kMaxMatch);
  spots_.push_back({length, above.depth + 1});
  for (std::size_t i = 0; i < suffixes_.size(); ++i) {
    const Cursor before = cursors_[live(place) + i];
    Cursor cursor;
    if (before.length > 0) cursor = wish_->live[i].index->advance(before, token);
    cursors_.push_back(cursor.length == length ? cursor : Cursor{});
  }
  for (std::size_t i = 0; i < searched_.size(); ++i) {
    const Agreeing before = agreeing_[sealed(place) + i];
    const SealedText::Followers& next = texts_[i].followers(above.depth, before);
    agreeing_.push_back(SealedText::followed_by(static_cast<std::uint32_t>(token) + 1, next, before));
  }
  return added;
}

std::span<Follower> Places::followers(Place place) {
  followers_.clear();
  read_live(place);
  read_sealed(place);
  merge(followers_);
  return followers_;
}

void Places::read_live(Place place) {
  for (std::size_t i = 0; i < suffixes_.size(); ++i) {
    const Cursor cursor = cursors_[live(place) + i];
    if (cursor.length == 0) continue;
    const Index& index = *wish_->live[i].index;
    const std::uint32_t degree = index.degree(cursor.state);
    if (degree > kWidest) continue;
    continuations_.resize(degree);
    index.continuations(cursor.state, continuations_);
    for (const Continuation& next : continuations_) {
      followers_.push_back({next.token, next.count, static_cast<std::uint32_t>(i), next.last});
    }
  }
}

void Places::read_sealed(Place place) {
  for (std::size_t i = 0; i < searched_.size(); ++i) {
    Agreeing left = agreeing_[sealed(place) + i];
    const SealedText::Followers& next = texts_[i].followers(spots_[place].depth, left);
    while (left != 0) {
      const std::uint32_t symbol = next[static_cast<std::size_t>(std::countr_zero(left))];
      const Agreeing same = SealedText::followed_by(symbol, next, left);
      left &= ~same;
      if (symbol == kSeparatorSymbol) continue;
      std::uint32_t last = 0;
      for (Agreeing bits = same; bits != 0; bits &= bits - 1) {
        last = std::max(last, texts_[i].occurrence(static_cast<std::uint32_t>(std::countr_zero(bits))).age);
      }
      followers_.push_back({static_cast<Token>(symbol - 1), static_cast<std::uint32_t>(std::popcount(same)),
                            static_cast<std::uint32_t>(suffixes_.size() + i), last});
    }
  }
}

Source Places::source(const Follower& follower) const {
  return follower.order < wish_->live.size() ? wish_->live[follower.order].kind
                                             : wish_->sealed[follower.order - wish_->live.size()].kind;
}

}  // namespace draftd
