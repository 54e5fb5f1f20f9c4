// SuffixDecoding (Oliaro et al., "SuffixDecoding: Extreme Speculative Decoding
// for Emerging AI Applications", 2024) as ArcticInference has it: each suffix
// of the text that occurs, in the own text or in all else, gives a plan of as
// many nodes as the match is long; the plan with the most tokens to expect wins.
#include <algorithm>
#include <utility>

#include "draft/presets/presets.h"

namespace draftd {
namespace {

constexpr std::uint32_t kNoEnd = UINT32_MAX;  // of a string
// So that a factor that no double is, as 1.1, gives the number that is meant.
constexpr double kRounding = 1e-6;

}  // namespace

void Presets::suffix_decoding(const DraftWish& wish, std::span<SealedText> texts, double min_survival) {
  const double least = std::max(min_survival, wish.policy.min_token_prob);
  for (const Places::From from : {Places::From::kOwnText, Places::From::kOthers}) {
    places_.begin(wish, texts, from);
    for (std::uint32_t length = places_.longest(); length > 0; length = places_.shorter(length)) {
      const double most = std::min<double>(wish.max_nodes, length * wish.policy.max_spec_factor + kRounding);
      rival_.begin(wish, static_cast<std::uint32_t>(most), least);
      if (rival_.most() <= plan_.score()) break;  // even if all of it were certain; shorter matches get fewer still
      best_first_.grow(rival_, places_, length, kNoEnd, ShareOf::kOccurrences);
      if (rival_.score() > plan_.score()) std::swap(plan_, rival_);
      plan_.count_cut_of(rival_);
    }
  }
}

}  // namespace draftd
