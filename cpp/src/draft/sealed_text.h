// Sealed text as one growing tree sees it: the occurrences nearest to the
// request's text, and what follows them. A node stands at those that agree with
// the path to it too. What the text itself did not come near is not searched
// for again: over 13 workloads a fresh search for every node loses 0.3 % of
// emitted tokens, for short contexts mostly blur, and takes twice the time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "draftd/nearest.h"
#include "draftd/types.h"
#include "sealed/layout.h"

namespace draftd {

// A bit for each occurrence of a Nearest.
using Agreeing = std::uint32_t;
static_assert(Nearest::kMost < 32);

class SealedText {
 public:
  using Followers = std::array<std::uint32_t, Nearest::kMost>;  // symbols; kSeparatorSymbol where a document ends

  // Starts over; a search then fills what it returns.
  Nearest& reset() {
    depths_ = 0;
    return nearest_;
  }
  Agreeing all() const { return (1U << nearest_.size) - 1; }
  const Occurrence& occurrence(std::uint32_t i) const { return nearest_.occurrences[i]; }

  // What follows the agreeing occurrences and `depth` more tokens; entries of others mean nothing.
  const Followers& followers(std::uint32_t depth, Agreeing agreeing) {
    for (; depths_ <= depth; ++depths_) {
      if (read_.size() == depths_) read_.emplace_back();
      read_[depths_].known = 0;
    }
    Read& read = read_[depth];
    for (Agreeing missing = agreeing & ~read.known; missing != 0; missing &= missing - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(missing));
      const Occurrence& occurrence = nearest_.occurrences[i];
      read.followers[i] = occurrence.segment->symbol(occurrence.slot + depth);
    }
    read.known |= agreeing;
    return read.followers;
  }

  // Those of the agreeing that are followed by that symbol.
  static Agreeing followed_by(std::uint32_t symbol, const Followers& followers, Agreeing agreeing) {
    Agreeing same = 0;
    for (Agreeing left = agreeing; left != 0; left &= left - 1) {
      if (followers[static_cast<std::size_t>(std::countr_zero(left))] == symbol) same |= left & -left;
    }
    return same;
  }

 private:
  struct Read {
    Agreeing known;
    Followers followers;
  };

  Nearest nearest_;
  std::vector<Read> read_;    // by depth
  std::uint32_t depths_ = 0;  // entries of `read_` in use
};

}  // namespace draftd
