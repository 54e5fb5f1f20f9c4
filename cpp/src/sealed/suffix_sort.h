// The suffixes of a text, sorted.
#pragma once

#include <cstdint>
#include <span>

namespace draftd {

// Writes the starts of the suffixes of `text` in their order; a suffix that
// another one starts with comes before it. Symbols are below `alphabet`.
void sort_suffixes(std::span<const std::int32_t> text, std::int32_t alphabet, std::span<std::int32_t> order);

}  // namespace draftd
