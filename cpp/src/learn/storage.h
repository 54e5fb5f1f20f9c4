// What a model is made of; its start is in start.cpp, its bytes in saving.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "draftd/model.h"
#include "learn/cells.h"

namespace draftd {

// How often evidence of one kind was right.
struct Count {
  float hits;
  float trials;
};

using Weights = std::array<float, Candidate::kInputs>;

// Survival is corrected by adding to its logit; between knots, linearly.
inline constexpr std::uint32_t kKnots = 72;

struct Model::Storage {
  std::vector<float> evidence;  // by cell: the logit of hits / trials, which is all that drafting reads
  std::vector<Count> counts;    // by cell
  std::vector<Weights> agreement;
  std::vector<Weights> standing;
  std::array<float, kKnots> correction{};
  std::uint64_t lessons = 0;

  // The candidates' inputs and what the model makes of them.
  void mix(std::span<const Candidate> candidates, std::span<Weights> inputs, std::span<float> into) const;
  // Sets the evidence of a cell from its count.
  void weigh(std::uint32_t cell);
};

// Sets what is not learned yet by what the evidence claims.
void start_by_hand(std::vector<Count>& counts, std::vector<Weights>& agreement);

}  // namespace draftd
