#include <algorithm>

#include "learn/storage.h"

namespace draftd {
namespace {

// The middle of each class.
constexpr std::array<float, cells::kTotals> kTotal{1, 2, 3.5F, 6, 16, 64};
constexpr std::array<float, cells::kShares> kShare{.05F, .17F, .37F, .6F, .8F, .95F, 1};
constexpr std::array<float, cells::kLengths> kLength{1, 1, 2, 3, 4, 5.5F, 8, 12, 22, 48};
constexpr std::array<float, cells::kSpreads> kMiss{.02F, .025F, .03F, .03F, .03F};
// A model's likeliest token is accepted more often than it states where the target is greedy, and as often where it
// samples: between the two.
constexpr std::array<float, cells::kStated> kStated{.2F,  .28F,  .43F, .57F, .73F,  .85F,
                                                    .91F, .955F, .98F, .99F, .995F, .998F};
constexpr std::array<float, cells::kPlaces> kUnstated{.6F, .2F, .1F};
// As many trials as the start counts for.
constexpr float kTrials = 2;

Count believing(float probability) { return {probability * kTrials, kTrials}; }

}  // namespace

void start_by_hand(std::vector<Count>& counts, std::vector<Weights>& agreement, std::vector<Weights>& standing) {
  counts.assign(cells::kCount, believing(0.5F));
  for (std::uint32_t context = 0; context < cells::kContexts; ++context) {
    const float total = kTotal[context % cells::kTotals];
    const float length = kLength[context / cells::kTotals % cells::kLengths];
    for (std::uint32_t kind = 0; kind < cells::kPerContext; ++kind) {
      const float share = kShare[kind / (cells::kPerContext / cells::kShares)];
      const float claim = share * total / (total + 1) * length / (length + 2);
      counts[cells::kKnown + context * cells::kPerContext + kind] = believing(claim);
    }
    for (std::uint32_t spread = 0; spread < cells::kSpreads; ++spread) {
      counts[cells::kMissed + context * cells::kSpreads + spread] = believing(kMiss[spread]);
    }
  }
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    for (std::uint32_t place = 0; place < cells::kPairPlaces; ++place) {
      for (std::uint32_t share = 0; share < cells::kShares; ++share) {
        for (std::uint32_t weight = 0; weight < cells::kPairWeights; ++weight) {
          counts[cells::paired(slot, place, share, static_cast<float>(weight))] = believing(.3F * kShare[share]);
        }
      }
    }
    for (std::uint32_t followers = 0; followers <= cells::kPairPlaces; ++followers) {
      counts[cells::not_paired(slot, followers)] = believing(.02F);
    }
  }
  for (std::uint32_t rank = 0; rank < cells::kRanks; ++rank) counts[cells::frequent(rank)] = believing(.01F);
  for (std::uint32_t depth = 0; depth < cells::kDepths; ++depth) {
    for (std::uint32_t claim = 0; claim < cells::kClaims; ++claim) {
      const float claimed = claim < cells::kStated ? kStated[claim] : kUnstated[claim - cells::kStated];
      counts[cells::kDrafted + claim * cells::kDepths + depth] = believing(claimed);
      // Of what the source leaves, one of others has a quarter.
      counts[cells::kUndrafted + claim * cells::kDepths + depth] = believing(.25F * (1 - claimed) + .003F);
    }
  }

  // Most weight on the longest context that has the candidate.
  agreement.assign(cells::kAgreements, {Four{.05F, .05F, .05F, .15F}, Four{.15F, .5F, 0, .8F}});
  for (std::uint32_t set = 0; set < cells::kAgreements; ++set) {
    agreement[set].low[set / ((cells::kLevels + 1) * (cells::kLevels + 1))] = .45F;
  }
  // What a draft source has is believed as the source is: that indexes lack it says little, and what they say of it
  // counts for less than half.
  standing.assign(cells::kStandings, {Four{}, Four{}});
  const auto both = standing.end() - cells::kStandings / cells::kProposers;
  const auto only = both - cells::kStandings / cells::kProposers;
  std::fill(only, both, Weights{Four{-.3F, -.05F, -.05F, -.15F}, Four{-.15F, -.5F, 0, .2F}});
  std::fill(both, standing.end(), Weights{Four{-.25F, -.03F, -.03F, -.09F}, Four{-.09F, -.3F, 0, .2F}});
}

}  // namespace draftd
