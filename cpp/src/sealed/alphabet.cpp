#include "sealed/alphabet.h"

#include <algorithm>

namespace draftd {

Alphabet::Alphabet(std::span<const std::uint32_t> stream, std::uint32_t largest_symbol) {
  if (largest_symbol < stream.size()) {
    ranks_.resize(std::size_t{largest_symbol} + 1);
    for (const std::uint32_t symbol : stream) ranks_[symbol] = 1;
    for (std::uint32_t symbol = 0; symbol <= largest_symbol; ++symbol) {
      if (ranks_[symbol] == 0) continue;
      ranks_[symbol] = static_cast<std::int32_t>(symbols_.size());
      symbols_.push_back(symbol);
    }
  } else {
    symbols_.assign(stream.begin(), stream.end());
    std::sort(symbols_.begin(), symbols_.end());
    symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
    symbols_.shrink_to_fit();
  }
}

std::int32_t Alphabet::rank(std::uint32_t symbol) const {
  if (!ranks_.empty()) return ranks_[symbol];
  return static_cast<std::int32_t>(std::lower_bound(symbols_.begin(), symbols_.end(), symbol) - symbols_.begin());
}

}  // namespace draftd
