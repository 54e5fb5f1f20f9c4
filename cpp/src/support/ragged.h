// Rows of unequal length, one behind the other, with the running ends of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace draftd {

template <typename T>
std::span<const T> ragged(std::span<const T> values, std::span<const std::uint32_t> end, std::size_t row) {
  const std::uint32_t first = row == 0 ? 0 : end[row - 1];
  return values.subspan(first, end[row] - first);
}

}  // namespace draftd
