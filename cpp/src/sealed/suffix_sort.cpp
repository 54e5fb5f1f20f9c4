#include "sealed/suffix_sort.h"

#include <algorithm>
#include <numeric>

namespace draftd {

void sort_suffixes(std::span<const std::int32_t> text, std::int32_t /*alphabet*/, std::span<std::int32_t> order) {
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::lexicographical_compare(text.begin() + a, text.end(), text.begin() + b, text.end());
  });
}

}  // namespace draftd
