#include "draftd/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "learn/logistic.h"
#include "learn/storage.h"

namespace draftd {
namespace {

// Counts are halved past this many trials: traffic changes.
constexpr float kMostTrials = 256;
// Gradients below this are noise, and most there are.
constexpr float kLeastError = 0.002F;
// Weights move fast at first. After n lessons: kSlowest + kFaster / (1 + n / kSettling).
constexpr double kSlowest = 0.0005, kFaster = 0.005, kSettling = 3000;
// By how much of an error the correction of survival moves.
constexpr float kCorrection = 0.05F;
constexpr float kKnotsPerLogit = 2.5F;
constexpr float kLowestLogit = -14;

// In an order that the twin repeats.
float dot(const Weights& a, const Weights& b, const Weights& inputs) {
  const Four sums = (a.low + b.low) * inputs.low + (a.high + b.high) * inputs.high;
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// Writes up to the next multiple of four.
void squash_all(std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); i += 4) {
    Four z;
    std::memcpy(&z, values.data() + i, sizeof(z));
    z = squash(z);
    std::memcpy(values.data() + i, &z, sizeof(z));
  }
}

bool is_counted(std::uint16_t cell) { return cell >= cells::kKnown; }

// Where a survival stands between the knots.
struct Place {
  float logit;
  std::uint32_t knot;  // the one below
  float above;         // share of the way to the next
};

Place place_of(double raw) {
  const float z = logit(static_cast<float>(raw), 1e-6F, 0.9999F);
  const float position = (z - kLowestLogit) * kKnotsPerLogit;
  const auto knot = static_cast<std::uint32_t>(position);
  return {z, knot, position - static_cast<float>(knot)};
}

float corrected(const Place& place, const std::array<float, kKnots>& correction) {
  const float below = correction[place.knot];
  return squash(place.logit + (below + (correction[place.knot + 1] - below) * place.above));
}

}  // namespace

Model::Model() : storage_(std::make_unique<Storage>()) {
  Storage& s = *storage_;
  start_by_hand(s.counts, s.agreement, s.standing);
  s.evidence.resize(cells::kCount);
  s.weigh_all();
  s.evidence[cells::kNothing] = 0;
  s.evidence[cells::kConstant] = 0.5F;
}
Model::Model(const Model& other) : storage_(std::make_unique<Storage>(*other.storage_)) {}
Model::~Model() = default;

void Model::Storage::weigh(std::span<const std::uint16_t, 4> cells) {
  Four hits;
  Four trials;
  for (std::size_t i = 0; i < 4; ++i) {
    hits[i] = counts[cells[i]].hits;
    trials[i] = counts[cells[i]].trials;
  }
  const Four logits = stretch(hits / trials);
  for (std::size_t i = 0; i < 4; ++i) evidence[cells[i]] = logits[i];
}

void Model::Storage::weigh_all() {
  std::array<std::uint16_t, 4> four;
  for (std::uint32_t first = cells::kKnown; first < cells::kCount; first += 4) {
    for (std::uint32_t i = 0; i < 4; ++i) four[i] = static_cast<std::uint16_t>(std::min(first + i, cells::kCount - 1));
    weigh(four);
  }
}

Weights Model::Storage::inputs(const Candidate& candidate) const {
  const auto& cells = candidate.cells;
  const float* const of = evidence.data();
  return {Four{of[cells[0]], of[cells[1]], of[cells[2]], of[cells[3]]},
          Four{of[cells[4]], candidate.blend, of[cells[6]], of[cells[7]]}};
}

float Model::Storage::mix(const Candidate& candidate, const Weights& inputs) const {
  return dot(agreement[candidate.agreement], standing[candidate.standing], inputs);
}

void Model::probabilities(std::span<const Candidate> candidates, std::span<float> into) const {
  const Storage& s = *storage_;
  for (std::size_t i = 0; i < candidates.size(); ++i) into[i] = s.mix(candidates[i], s.inputs(candidates[i]));
  squash_all(into.first(candidates.size()));
}

double Model::survival(double raw) const { return static_cast<double>(corrected(place_of(raw), storage_->correction)); }

void Model::learn(std::span<const Candidate> candidates, Token followed) {
  if (candidates.empty()) return;
  Storage& s = *storage_;
  ++s.lessons;
  const auto rate = static_cast<float>(kSlowest + kFaster / (1.0 + static_cast<double>(s.lessons) / kSettling));
  std::array<Weights, kMostCandidates> inputs;
  std::array<float, kMostCandidates> probabilities{};
  for (std::size_t i = 0; i < candidates.size(); ++i) inputs[i] = s.inputs(candidates[i]);
  for (std::size_t i = 0; i < candidates.size(); ++i) probabilities[i] = s.mix(candidates[i], inputs[i]);
  squash_all(std::span(probabilities).first(candidates.size()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const float error = (candidates[i].token == followed ? 1.0F : 0.0F) - probabilities[i];
    if (std::fabs(error) < kLeastError) continue;
    const float step = rate * error;
    for (Weights* const weights : {&s.agreement[candidates[i].agreement], &s.standing[candidates[i].standing]}) {
      weights->low += step * inputs[i].low;
      weights->high += step * inputs[i].high;
    }
  }

  s.count(candidates, followed);
}

// A trial of each candidate's evidence, and a hit for what followed. Candidates
// share cells: each cell is weighed once.
void Model::Storage::count(std::span<const Candidate> candidates, Token followed) {
  constexpr float kStale = std::numeric_limits<float>::quiet_NaN();
  std::array<std::uint16_t, kMostCandidates * Candidate::kInputs> stale;
  std::size_t size = 0;
  for (const Candidate& candidate : candidates) {
    const float hit = candidate.token == followed ? 1.0F : 0.0F;
    for (const std::uint16_t cell : candidate.cells) {
      if (!is_counted(cell)) continue;
      Count& count = counts[cell];
      count.hits += hit;
      count.trials += 1.0F;
      if (count.trials > kMostTrials) count = {count.hits * 0.5F, count.trials * 0.5F};
      if (std::isnan(evidence[cell])) continue;
      evidence[cell] = kStale;
      stale[size++] = cell;
    }
  }
  for (; size % 4 != 0; ++size) stale[size] = stale[size - 1];
  for (std::size_t i = 0; i < size; i += 4) weigh(std::span(stale).subspan(i).first<4>());
}

void Model::learn_survival(double raw, bool accepted) {
  std::array<float, kKnots>& correction = storage_->correction;
  const Place place = place_of(raw);
  const float step = ((accepted ? 1.0F : 0.0F) - corrected(place, correction)) * kCorrection;
  float& below = correction[place.knot];
  float& above = correction[place.knot + 1];
  below += step * (1.0F - place.above);
  above += step * place.above;
  // Survival must not fall when raw rises, or trees would not be in its order.
  constexpr float kMostFall = 1.0F / kKnotsPerLogit;
  if (place.knot > 0) below = std::max(below, correction[place.knot - 1] - kMostFall);
  above = std::max(above, below - kMostFall);
  if (place.knot + 2 < kKnots) above = std::min(above, correction[place.knot + 2] + kMostFall);
  below = std::min(below, above + kMostFall);
}

std::uint64_t Model::lessons() const { return storage_->lessons; }

std::size_t Model::memory_size() const {
  const Storage& s = *storage_;
  return sizeof(Model) + sizeof(Storage) + s.evidence.capacity() * sizeof(float) + s.counts.capacity() * sizeof(Count) +
         (s.agreement.capacity() + s.standing.capacity()) * sizeof(Weights);
}

}  // namespace draftd
