// From evidence to probabilities: prediction by partial matching, method C
// (Moffat 1990), blended over the contexts of all sources. A context of length
// L whose followers were counted `total` times, `distinct` different ones, is
// trusted with
//     confidence = total / (total + distinct / (1 + L / 16)) * L / (L + 1)
// of what longer contexts left unclaimed. PPM-C is total / (total + distinct);
// long contexts surprise less often than it says, and short ones coincide by
// chance: the two corrections gain 1 % and 2 % of emitted tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "draft/evidence.h"

namespace draftd {

class Blend {
 public:
  // Contexts asked per node. Two more gain 0.02 % of emitted tokens.
  static constexpr std::size_t kLevels = 4;

  // What is not promised to any token yet.
  double unclaimed() const { return unclaimed_; }
  // At most kLevels times, longest first.
  void add(const Level& level);
  // Shares out what the contexts left among frequent tokens, by method C too: a
  // short text's frequencies say little.
  void add(const Fill& fill);

  // Candidates, in the order first seen.
  std::size_t size() const { return size_; }
  Token token(std::size_t i) const { return tokens_[i]; }
  Source source(std::size_t i) const { return sources_[i]; }  // the longest context's that has it
  double probability(std::size_t i) const { return probabilities_[i]; }

 private:
  static constexpr std::size_t kMost = kLevels * Level::kFollowers + Index::kFrequentTokens;

  // Looks for the token among the first `known` candidates only.
  void promise(std::uint32_t known, Token token, Source source, double probability);

  // As columns, so that a token is found by comparing several at a time.
  std::array<Token, kMost> tokens_;
  std::array<Source, kMost> sources_;
  std::array<double, kMost> probabilities_;
  std::uint32_t size_ = 0;
  double unclaimed_ = 1.0;
};

}  // namespace draftd
