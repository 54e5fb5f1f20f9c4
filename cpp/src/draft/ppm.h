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

struct Candidate {
  Token token;
  Source source;  // of the longest context that has it
  double probability;
};

struct Candidates {
  std::array<Candidate, Evidence::kLevels * Evidence::kFollowers + Index::kFrequentTokens> list;
  std::size_t count = 0;

  std::span<const Candidate> used() const { return {list.data(), count}; }
  void add(Token token, Source source, double probability);
};

// `fill` (may be null) shares out what the contexts leave among its most
// frequent tokens.
void score(const Evidence& evidence, const Index* fill, Candidates& candidates);

}  // namespace draftd
