// The symbols of a stream, numbered without gaps in their order: that is what
// sorting needs, and token ids may be anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draftd/index.h"

namespace draftd {

class Alphabet {
 public:
  Alphabet(std::span<const std::uint32_t> stream, std::uint32_t largest_symbol);

  std::size_t size() const { return symbols_.size(); }
  std::uint32_t symbol(std::int32_t rank) const { return symbols_[static_cast<std::size_t>(rank)]; }
  std::int32_t rank(std::uint32_t symbol) const;

 private:
  std::vector<std::uint32_t> symbols_;
  std::vector<std::int32_t> ranks_;  // by symbol; empty where that would take more memory than the stream
};

}  // namespace draftd
