#include "engine/tape_selection.h"

#include <algorithm>
#include <ranges>

#include "draftd/drafting.h"
#include "sealed/layout.h"

namespace draftd {
namespace {

constexpr Token kNoToken = -1;  // as separators in live text

}  // namespace

void TapeColumns::clear() {
  window_end.clear();
  token_end.clear();
  tokens.clear();
  corpus.clear();
  version.clear();
  reader.clear();
  reader_epoch.clear();
  reads.clear();
  reads_version.clear();
}

void TapeSelection::clear(std::size_t rows) {
  rows_.clear();
  places_.clear();
  sealed_.clear();
  nearest_.clear();
  nearest_.reserve(rows * kMaxSources);  // searches point into it
  search_.clear();
}

void TapeSelection::begin_row(Token vocabulary) { rows_.push_back({vocabulary, places_.size(), sealed_.size()}); }

void TapeSelection::add(const Index& index, Cursor cursor, std::uint32_t least, TapeSource source) {
  const std::size_t before = places_.size();
  for (; cursor.length > least && places_.size() - before < kPlaces; cursor = index.shorter(cursor)) {
    const std::uint32_t degree = index.degree(cursor.state);
    if (degree > kPlaces) return;  // shorter contexts have more
    followers_.resize(degree);
    index.continuations(cursor.state, followers_);
    std::sort(followers_.begin(), followers_.end(), [](const Continuation& a, const Continuation& b) {
      return a.count != b.count ? a.count > b.count : a.last > b.last;
    });
    for (const Continuation& follower : followers_) {
      places_.push_back({cursor.length, index.text(), nullptr, follower.last - std::size_t{1}, source});
    }
  }
}

void TapeSelection::add(const SegmentSet& segments, std::span<const Token> text, TapeSource source) {
  sealed_.push_back({&nearest_.emplace_back(), source});
  search_.add(segments, text, nearest_.back());
}

void TapeSelection::choose(std::uint32_t windows, TapeColumns& tapes) {
  search_.run();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool last = i + 1 == rows_.size();
    const std::size_t end = last ? places_.size() : rows_[i + 1].first_place;
    const std::size_t sealed_end = last ? sealed_.size() : rows_[i + 1].first_sealed;
    of_row_.assign(places_.begin() + static_cast<std::ptrdiff_t>(rows_[i].first_place),
                   places_.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t s = rows_[i].first_sealed; s < sealed_end; ++s) {
      const Nearest& nearest = *sealed_[s].nearest;
      for (std::uint32_t n = 0; n < nearest.size; ++n) {
        const Occurrence& found = nearest.occurrences[n];
        of_row_.push_back({found.length, {}, found.segment, found.slot, sealed_[s].source});
      }
    }
    std::stable_sort(of_row_.begin(), of_row_.end(),
                     [](const Place& a, const Place& b) { return a.length > b.length; });
    choose(rows_[i], of_row_, windows, tapes);
    tapes.window_end.push_back(static_cast<std::uint32_t>(tapes.token_end.size()));
  }
}

void TapeSelection::choose(const Row& row, std::span<const Place> places, std::uint32_t windows, TapeColumns& tapes) {
  chosen_.clear();
  for (const Place& place : places) {
    if (chosen_.size() == windows) break;
    if (place.token(place.at, row.vocabulary) == kNoToken) continue;
    const auto is_like = [&](const Place* other) { return place.goes_on_like(*other, row.vocabulary); };
    if (std::none_of(chosen_.begin(), chosen_.end(), is_like)) chosen_.push_back(&place);
  }
  for (const Place* place : chosen_ | std::views::reverse) place->write(row.vocabulary, tapes);
}

Token TapeSelection::Place::token(std::size_t position, Token vocabulary) const {
  Token read = kNoToken;
  if (segment != nullptr) {
    read = static_cast<Token>(segment->symbol(position)) - 1;
  } else if (position < live.size()) {
    read = live[position];
  }
  return read < vocabulary ? read : kNoToken;
}

bool TapeSelection::Place::goes_on_like(const Place& other, Token vocabulary) const {
  for (std::size_t i = 0; i < kDistinct; ++i) {
    const Token here = token(at + i, vocabulary);
    if (here != other.token(other.at + i, vocabulary)) return false;
    if (here == kNoToken) return true;
  }
  return true;
}

void TapeSelection::Place::write(Token vocabulary, TapeColumns& tapes) const {
  std::size_t from = at;
  while (at - from < kBefore && token(from - 1, vocabulary) != kNoToken) --from;
  for (std::size_t position = from; position < at + kAfter; ++position) {
    const Token read = token(position, vocabulary);
    if (read == kNoToken) break;
    tapes.tokens.push_back(read);
  }
  tapes.token_end.push_back(static_cast<std::uint32_t>(tapes.tokens.size()));
  tapes.corpus.push_back(source.corpus);
  tapes.version.push_back(source.version);
}

}  // namespace draftd
