// The numbers of the cells: one for each kind of evidence. The factors of a
// number are quantised so finely that kinds differ, and so coarsely that each is
// met often.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace draftd::cells {

// Where a context's followers were last seen.
enum class Origin : std::uint8_t { kPrompt, kOutput, kHistory, kGroup, kCorpus };

inline constexpr std::uint32_t kOrigins = 5;
inline constexpr std::uint32_t kLengths = 10;   // 0, 1, 2, 3, 4, 5-6, 7-9, 10-15, 16-31, 32+ tokens
inline constexpr std::uint32_t kTotals = 6;     // 1, 2, 3-4, 5-8, 9-32, 33+ occurrences
inline constexpr std::uint32_t kShares = 7;     // below .1, .25, .5, .7, .9, 1, and 1
inline constexpr std::uint32_t kRecencies = 3;  // far, near, between
inline constexpr std::uint32_t kRoles = 3;      // at the longest context, known to a longer one, new
inline constexpr std::uint32_t kSpreads = 5;    // 1, 2, 3-4, 5-16, 17+ different followers
inline constexpr std::uint32_t kPairPlaces = 6;
inline constexpr std::uint32_t kPairWeights = 6;
inline constexpr std::uint32_t kRanks = 24;   // of frequent tokens
inline constexpr std::uint32_t kStated = 12;  // what a draft source states: below .05, .15, .3, .5, .7, .8, .9, ...
inline constexpr std::uint32_t kPlaces = 3;  // of a draft source's node that states nothing: first child, second, later
inline constexpr std::uint32_t kDepths = 3;  // of a draft source's node: 1, 2-3, 4+

// How many of the bounds a value passes, or reaches.
template <typename Value, std::size_t kBounds>
std::uint32_t passed(Value value, const std::array<Value, kBounds>& bounds) {
  std::uint32_t classes = 0;
  for (const Value bound : bounds) classes += value > bound ? 1 : 0;
  return classes;
}
template <typename Value, std::size_t kBounds>
std::uint32_t reached(Value value, Value whole, const std::array<Value, kBounds>& shares) {
  std::uint32_t classes = 0;
  for (const Value share : shares) classes += value >= share * whole ? 1 : 0;
  return classes;
}

inline std::uint32_t length_class(std::uint32_t tokens) {
  return passed(tokens, std::array<std::uint32_t, kLengths - 1>{0, 1, 2, 3, 4, 6, 9, 15, 31});
}
inline std::uint32_t total_class(std::uint64_t total) {
  return passed(total, std::array<std::uint64_t, kTotals - 1>{1, 2, 4, 8, 32});
}
inline std::uint32_t spread_class(std::uint32_t distinct) {
  return passed(distinct, std::array<std::uint32_t, kSpreads - 1>{1, 2, 4, 16});
}
// Twentieths, without a division: whole numbers up to 2^32.
inline std::uint32_t share_class(std::uint64_t part, std::uint64_t whole) {
  return reached(part * 20, whole, std::array<std::uint64_t, kShares - 1>{2, 5, 10, 14, 18, 20});
}
inline std::uint32_t weight_share_class(float share) {
  return reached(share, 1.0F, std::array<float, kShares - 1>{.1F, .25F, .5F, .7F, .9F, 1.0F});
}

// Cells 0 and 1 don't count: no evidence, and a constant.
inline constexpr std::uint32_t kNothing = 0;
inline constexpr std::uint32_t kConstant = 1;
inline constexpr std::uint32_t kKnown = 2;
inline constexpr std::uint32_t kPerContext = kShares * 2 * kRecencies * kRoles;
inline constexpr std::uint32_t kContexts = kOrigins * kLengths * kTotals;
inline constexpr std::uint32_t kMissed = kKnown + kContexts * kPerContext;
inline constexpr std::uint32_t kPaired = kMissed + kContexts * kSpreads;
inline constexpr std::uint32_t kPerPairs = kPairPlaces * kShares * kPairWeights + kPairPlaces + 1;
inline constexpr std::uint32_t kFrequent = kPaired + 2 * kPerPairs;
inline constexpr std::uint32_t kDrafted = kFrequent + kRanks;
inline constexpr std::uint32_t kClaims = kStated + kPlaces;
inline constexpr std::uint32_t kUndrafted = kDrafted + kClaims * kDepths;
inline constexpr std::uint32_t kCount = kUndrafted + kClaims * kDepths;
static_assert(kCount <= UINT16_MAX);

inline std::uint32_t context(Origin origin, std::uint32_t length, std::uint64_t total) {
  return (static_cast<std::uint32_t>(origin) * kLengths + length_class(length)) * kTotals + total_class(total);
}
// A follower of a context of that number.
inline std::uint32_t known(std::uint32_t context, std::uint32_t share, bool latest, std::uint32_t recency,
                           std::uint32_t role) {
  return kKnown + context * kPerContext + ((share * 2 + (latest ? 1 : 0)) * kRecencies + recency) * kRoles + role;
}
// A context of that number does not have the candidate.
inline std::uint32_t missed(std::uint32_t context, std::uint32_t distinct) {
  return kMissed + context * kSpreads + spread_class(distinct);
}
// `slot` 0: pairs of the request, 1: of the history. `place` from 0, the latest.
inline std::uint32_t paired(std::uint32_t slot, std::uint32_t place, std::uint32_t share, float weight) {
  const auto weight_class = std::min(static_cast<std::uint32_t>(weight), kPairWeights - 1);
  return kPaired + slot * kPerPairs + (place * kShares + share) * kPairWeights + weight_class;
}
inline std::uint32_t not_paired(std::uint32_t slot, std::uint32_t followers) {
  return kPaired + slot * kPerPairs + kPairPlaces * kShares * kPairWeights + followers;
}
inline std::uint32_t frequent(std::uint32_t rank) { return kFrequent + rank; }
// What a draft source says of its node: the probability that it states, given the parent's, by class, or,
// where it states none, how many of its siblings come first.
inline std::uint32_t stated(float probability) {
  // Finest where paths are long: a chain of 8 such nodes survives in one of two cases at .92, in nine of ten at .99.
  return reached(probability, 1.0F,
                 std::array<float, kStated - 1>{.05F, .15F, .3F, .5F, .7F, .8F, .9F, .95F, .98F, .99F, .997F});
}
inline std::uint32_t unstated(std::uint32_t before) { return kStated + std::min(before, kPlaces - 1); }
inline std::uint32_t depth_class(std::uint32_t depth) {
  return passed(depth, std::array<std::uint32_t, kDepths - 1>{1, 3});
}
inline std::uint32_t drafted(std::uint32_t claim, std::uint32_t depth) {
  return kDrafted + claim * kDepths + depth_class(depth);
}
// A draft source does not have the candidate; that of all that it has there, together.
inline std::uint32_t undrafted(std::uint32_t claim, std::uint32_t depth) {
  return kUndrafted + claim * kDepths + depth_class(depth);
}

// Sets of weights.
inline constexpr std::uint32_t kLevels = 3;
inline constexpr std::uint32_t kAgreements = kLevels * (kLevels + 1) * (kLevels + 1);
inline constexpr std::uint32_t kProposers = 5;
inline constexpr std::uint32_t kStandings = kProposers * (kLengths * kOrigins * 3 + 1);

// `first`: the longest context that has it, `knowing` of `contexts` do.
inline std::uint32_t agreement(std::uint32_t first, std::uint32_t knowing, std::uint32_t contexts) {
  return (first * (kLevels + 1) + knowing) * (kLevels + 1) + contexts;
}
// Who proposed a candidate; both: a draft source and a context.
enum class Proposer : std::uint8_t { kContext, kPairs, kFrequent, kDraftSource, kBoth };
// The kind of the longest context; 0: there is none.
inline std::uint32_t longest(std::uint32_t length, Origin origin) {
  return 1 + length_class(length) * kOrigins + static_cast<std::uint32_t>(origin);
}
// How it stands at the longest context: 0 absent, 1 present, 2 the likeliest.
inline std::uint32_t standing(Proposer proposer, std::uint32_t longest, std::uint32_t state) {
  const std::uint32_t at = longest == 0 ? 0 : 1 + (longest - 1) * 3 + state;
  return static_cast<std::uint32_t>(proposer) * (kStandings / kProposers) + at;
}

}  // namespace draftd::cells
