// Words that every part of the core shares.
#pragma once

#include <cstdint>

namespace draftd {

using Token = std::int32_t;

// Longest context a match looks at, and the depth up to which occurrences are
// counted exactly. It bounds the work per appended token.
inline constexpr std::uint32_t kMaxMatch = 64;

}  // namespace draftd
