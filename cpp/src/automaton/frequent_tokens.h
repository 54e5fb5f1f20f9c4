// The most frequent tokens of a growing text, kept exactly: most frequent
// first, ties to the more recent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "draftd/index.h"

namespace draftd {

class FrequentTokens {
 public:
  // `token` was just read for the `count`-th time. Only its rank can have
  // changed, upwards, so one pass from its old place keeps the order exact.
  void count(Token token, std::uint32_t count) {
    // A ranked token now counts more than the last; most tokens end here.
    if (size_ == tokens_.size() && count < tokens_[size_ - 1].count) return;
    std::size_t place = 0;
    while (place < size_ && tokens_[place].token != token) ++place;
    if (place == size_) {
      if (size_ < tokens_.size()) {
        ++size_;
      } else {
        place = size_ - 1;
      }
    }
    tokens_[place] = {token, count};
    for (; place > 0 && tokens_[place - 1].count <= count; --place) {
      std::swap(tokens_[place - 1], tokens_[place]);
    }
  }

  std::span<const FrequentToken> ranked() const { return {tokens_.data(), size_}; }

 private:
  std::array<FrequentToken, Index::kFrequentTokens> tokens_{};
  std::size_t size_ = 0;
};

}  // namespace draftd
