// The named presets: what users of other drafters know, from the same sources.
// Each draws up the whole tree of one request; how they differ from what they
// are named after is in docs/presets.md.
#pragma once

#include <span>

#include "draft/presets/best_first.h"
#include "draft/presets/places.h"
#include "draft/presets/plan.h"

namespace draftd {

// Keeps its buffers from plan to plan; one per thread.
class Presets {
 public:
  // The tree of a wish whose preset is not kLearned, none of it below
  // `min_survival`. `texts` are searched, one for each sealed source. Valid until the next call.
  Plan& draw_up(const DraftWish& wish, std::span<SealedText> texts, double min_survival);

 private:
  void suffix_decoding(const DraftWish& wish, std::span<SealedText> texts, double min_survival);
  void ngram_bfs(const DraftWish& wish, std::span<SealedText> texts);
  void ngram_prob(const DraftWish& wish, std::span<SealedText> texts);

  // A node from which a breadth-first walk goes on.
  struct Stop {
    Plan::Node node;
    Places::Place place;
    std::uint32_t length;  // of the string
    double breadth;
    double probability;
  };

  void widen(Stop stop);

  Places places_;
  Plan plan_;
  Plan rival_;  // of a plan that may be better
  BestFirst best_first_;
  std::vector<Stop> queue_;
};

}  // namespace draftd
