// From evidence to probabilities: prediction by partial matching, method C
// (Moffat 1990), blended over the contexts of all sources. A context of length
// L whose followers were counted `total` times, `distinct` different ones, is
// trusted with
//     confidence = total / (total + distinct) * L / (L + 1)
// and passes the rest on to the next shorter one. PPM-C has the first factor
// alone; the second, for short contexts coincide by chance, gains 2 % of
// emitted tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "draft/evidence.h"

namespace draftd {

// Tokens with their probabilities, in the order first added; as columns, so
// that a token is found by comparing eight at a time.
struct Candidates {
  static constexpr std::size_t kMost = Evidence::kLevels * Evidence::kFollowers + Index::kFrequentTokens;

  std::array<Token, kMost> token;
  std::array<Source, kMost> source;  // of the longest context that has it
  std::array<double, kMost> probability;
  std::size_t count = 0;

  void add(Token added, Source from, double more);
};

// `fill` (may be null) shares out what the contexts leave among its most
// frequent tokens.
void score(const Evidence& evidence, const Index* fill, Candidates& candidates);

}  // namespace draftd
