// Lessons for tests of models.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "draftd/model.h"
#include "learn/cells.h"

namespace draftd::testing {

inline Candidate random_candidate(std::mt19937& random, Token token) {
  const auto below = [&](std::uint32_t count) {
    return static_cast<std::uint16_t>(std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random));
  };
  Candidate candidate{};
  candidate.token = token;
  candidate.blend = std::uniform_real_distribution<float>(-7.0F, 7.0F)(random);
  for (std::uint16_t& cell : candidate.cells) cell = below(cells::kCount);
  candidate.cells[Candidate::kBlend] = cells::kNothing;
  candidate.agreement = below(cells::kAgreements);
  candidate.standing = below(cells::kStandings);
  return candidate;
}

inline float probability(const Model& model, const Candidate& candidate) {
  std::array<float, 4> probabilities{};
  model.probabilities({&candidate, 1}, probabilities);
  return probabilities[0];
}

// The model after so many lessons; other seeds, other lessons.
inline Model taught(std::uint32_t seed, int lessons) {
  std::mt19937 random(seed);
  Model model;
  for (int lesson = 0; lesson < lessons; ++lesson) {
    std::vector<Candidate> candidates;
    for (Token token = 0; token < 5; ++token) candidates.push_back(random_candidate(random, token));
    model.learn(candidates, static_cast<Token>(random() % 6));
    model.learn_survival(std::uniform_real_distribution<double>(0.0, 1.0)(random), random() % 2 == 0);
  }
  return model;
}

}  // namespace draftd::testing
