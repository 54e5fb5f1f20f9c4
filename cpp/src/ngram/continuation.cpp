// Lookup in a text that is seen once: Knuth, Morris and Pratt, backwards.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "draftd/ngram.h"

namespace draftd {

NgramRule::NgramRule(std::uint32_t shortest_gram, std::uint32_t longest_gram, bool newest_counts)
    : shortest(shortest_gram), longest(longest_gram), newest(newest_counts) {
  if (shortest < 1 || shortest > longest || longest > kMaxMatch) {
    throw std::invalid_argument("n-grams of " + std::to_string(shortest) + " to " + std::to_string(longest) +
                                " tokens; needed is 1 <= shortest <= longest <= " + std::to_string(kMaxMatch));
  }
}

// Read from its end, the text begins with the n-gram, and the places where it
// agrees with its own beginning are the occurrences, the newest first.
std::span<const Token> ngram_continuation(std::span<const Token> text, const NgramRule& rule, std::size_t most) {
  const auto backwards = [&](std::size_t i) { return text[text.size() - 1 - i]; };
  // Of the first tokens, up to each: the longest beginning that they also end with.
  std::array<std::uint32_t, kMaxMatch> border{};
  std::uint32_t agreed = 0;
  std::uint32_t longest = 0;
  std::size_t begin = 0;  // of the occurrence, in the text
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (agreed > 0 && backwards(agreed) != backwards(i)) agreed = border[agreed - 1];
    if (backwards(agreed) == backwards(i)) ++agreed;
    if (i < rule.longest) border[i] = agreed;
    if (agreed > longest || (agreed == longest && agreed > 0 && !rule.newest)) {
      longest = agreed;
      begin = text.size() - 1 - i;
    }
    if (agreed == rule.longest) agreed = border[agreed - 1];
  }
  if (longest < rule.shortest) return {};
  const std::span<const Token> behind = text.subspan(begin + longest);
  return behind.first(std::min(most, behind.size()));
}

}  // namespace draftd
