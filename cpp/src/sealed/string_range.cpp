#include "sealed/string_range.h"

#include <algorithm>
#include <ranges>

namespace draftd {
namespace {

// The symbol of the token `back` tokens before the end.
std::uint32_t symbol_of(std::span<const Token> string, std::size_t back) {
  return static_cast<std::uint32_t>(string[string.size() - 1 - back]) + 1;
}

// How the text before a slot, read backwards, stands to the string: below it,
// equal as far as the string goes, or above.
int order(const Segment::Layout& segment, std::size_t slot, std::span<const Token> string) {
  const std::uint32_t agreed = agreement(segment, slot, string);
  if (agreed == string.size()) return 0;
  return segment.symbol(slot - 1 - agreed) < symbol_of(string, agreed) ? -1 : 1;
}

template <typename IsBelow>
std::uint32_t first_not_below(const Segment::Layout& segment, IsBelow is_below) {
  const auto entries = std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(segment.entry_count));
  return *std::ranges::partition_point(entries, [&](std::uint32_t entry) { return is_below(segment.entry(entry)); });
}

}  // namespace

// A separator, with which no token agrees, stands at slot 0.
std::uint32_t agreement(const Segment::Layout& segment, std::size_t slot, std::span<const Token> string) {
  std::uint32_t length = 0;
  while (length < string.size() && segment.symbol(slot - 1 - length) == symbol_of(string, length)) ++length;
  return length;
}

EntryRange slots_behind(const Segment::Layout& segment, std::span<const Token> string) {
  return {first_not_below(segment, [&](std::uint32_t slot) { return order(segment, slot, string) < 0; }),
          first_not_below(segment, [&](std::uint32_t slot) { return order(segment, slot, string) <= 0; })};
}

std::uint32_t longest_followed(const Segment::Layout& segment, std::span<const Token> string) {
  const std::uint32_t place =
      first_not_below(segment, [&](std::uint32_t slot) { return order(segment, slot, string) < 0; });
  std::uint32_t longest = 0;
  if (place > 0) longest = agreement(segment, segment.entry(place - 1), string);
  if (place < segment.entry_count) longest = std::max(longest, agreement(segment, segment.entry(place), string));
  return longest;
}

}  // namespace draftd
