// What a model is made of; its start is in start.cpp, its bytes in saving.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "draftd/model.h"
#include "learn/cells.h"
#include "learn/logistic.h"

namespace draftd {

// How often evidence of one kind was right.
struct Count {
  float hits;
  float trials;
};

// A candidate's inputs, or their weights.
struct Weights {
  Four low;
  Four high;
};
static_assert(Candidate::kInputs == 8);

// Survival is corrected by adding to its logit; between knots, linearly.
inline constexpr std::uint32_t kKnots = 72;

struct Model::Storage {
  std::vector<float> evidence;  // by cell: the logit of hits / trials, which is all that drafting reads
  std::vector<Count> counts;    // by cell
  std::vector<Weights> agreement;
  std::vector<Weights> standing;
  std::array<float, kKnots> correction{};
  std::uint64_t lessons = 0;

  Weights inputs(const Candidate& candidate) const;
  float mix(const Candidate& candidate, const Weights& inputs) const;  // the logit of its probability
  void count(std::span<const Candidate> candidates, Token followed);
  // Sets the evidence of these cells, or of all that count, from their counts.
  void weigh(std::span<const std::uint16_t, 4> cells);
  void weigh_all();
};

// Sets what is not learned yet by what the evidence claims.
void start_by_hand(std::vector<Count>& counts, std::vector<Weights>& agreement, std::vector<Weights>& standing);

}  // namespace draftd
