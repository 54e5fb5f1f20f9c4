// SGLang's NGRAM speculation, match type PROB: after each suffix of the text
// that occurs, the longest first, the likeliest strings by the shares of what
// followed, until there are none or the nodes are used up.
#include <algorithm>

#include "draft/presets/ngram.h"
#include "draft/presets/presets.h"

namespace draftd {

void Presets::ngram_prob(const DraftWish& wish, std::span<SealedText> texts) {
  places_.begin(wish, texts, Places::From::kAll);
  for (std::uint32_t match = std::min(places_.longest(), ngram::kWindow); match > 0 && !plan_.full(); --match) {
    best_first_.grow(plan_, places_, match, ngram::kLongest, ShareOf::kMostFrequent);
  }
}

}  // namespace draftd
