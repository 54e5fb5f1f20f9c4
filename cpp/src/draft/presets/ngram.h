// What SGLang's two kinds of NGRAM speculation share: one window over all text.
#pragma once

#include <cstdint>

namespace draftd::ngram {

inline constexpr std::uint32_t kWindow = 12;   // tokens of the longest match
inline constexpr std::uint32_t kLongest = 18;  // tokens of a match and what is drafted after it

}  // namespace draftd::ngram
