// Where a string of tokens stands in several sources at once, and what followed
// it there: the sources as one text. Unlike Contexts, which goes on with
// whatever suffix a source has, a place is where exactly that string occurs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft/sealed_text.h"
#include "draftd/drafting.h"

namespace draftd {

// A token that followed a string.
struct Follower {
  Token token;
  std::uint32_t count;  // over all sources
  std::uint32_t order;  // of the first source that has it
  std::uint32_t last;   // there; the larger, the more recent

  // Sources are in the order of their recency: own text first.
  bool later_than(const Follower& other) const {
    return order != other.order ? order < other.order : last > other.last;
  }
  bool more_than(const Follower& other) const { return count != other.count ? count > other.count : later_than(other); }
};

class Places {
 public:
  using Place = std::uint32_t;
  enum class From : std::uint8_t { kOwnText, kOthers, kAll };

  // A context with more different followers says nothing and costs much.
  static constexpr std::uint32_t kWidest = 1024;

  // `texts` are searched, one for each sealed source of the wish. Places of before end.
  void begin(const DraftWish& wish, std::span<SealedText> texts, From from);

  // Tokens of the longest suffix of the request's text that occurs, at most kMaxMatch.
  std::uint32_t longest() const;
  // The longest suffix shorter than that which occurs in more places; 0: none.
  std::uint32_t shorter(std::uint32_t length) const;
  // The place of the suffix of that many tokens; no longer than one asked for before. Other places end.
  Place suffix(std::uint32_t length);
  // The place of the string and a token that followed it.
  Place below(Place place, Token token);

  // What followed the string, in no order; valid until it is asked again.
  std::span<Follower> followers(Place place);
  Source source(const Follower& follower) const;

 private:
  struct Spot {
    std::uint32_t length;  // tokens of the string that are compared, at most kMaxMatch
    std::uint32_t depth;   // of them below the request's text
  };

  std::size_t live(Place place) const { return place * wish_->live.size(); }
  std::size_t sealed(Place place) const { return place * wish_->sealed.size(); }
  void read_live(Place place);
  void read_sealed(Place place);

  const DraftWish* wish_ = nullptr;
  std::span<SealedText> texts_;
  std::vector<Cursor> suffixes_;    // one for each live source: the longest suffix there not yet passed
  std::vector<Agreeing> searched_;  // one for each sealed source: what may be read
  std::vector<Spot> spots_;
  std::vector<Cursor> cursors_;     // of each place, one for each live source; length 0 where the string is not
  std::vector<Agreeing> agreeing_;  // of each place, one for each sealed source
  std::vector<Continuation> continuations_;
  std::vector<Follower> followers_;
};

}  // namespace draftd
