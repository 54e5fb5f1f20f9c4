#include "draft/presets/presets.h"

namespace draftd {

Plan& Presets::draw_up(const DraftWish& wish, std::span<SealedText> texts, double min_survival) {
  plan_.begin(wish, wish.max_nodes, min_survival);
  switch (wish.policy.preset) {
    case Preset::kSuffixDecoding: suffix_decoding(wish, texts, min_survival); break;
    case Preset::kNgramBfs: ngram_bfs(wish, texts); break;
    case Preset::kNgramProb: ngram_prob(wish, texts); break;
    case Preset::kLearned: break;
  }
  return plan_;
}

}  // namespace draftd
