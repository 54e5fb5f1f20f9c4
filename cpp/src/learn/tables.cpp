// What a model knows as plain numbers, and a model made of such numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "learn/storage.h"

namespace draftd {
namespace {

// Learning keeps weights far below it; sums of this many stay finite.
constexpr float kMostWeight = 1e6F;

// Nobody gives so many; counting on stays exact, also as a double.
constexpr std::uint64_t kMostLessons = std::uint64_t{1} << 52;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("learned numbers: " + what);
}

void require_size(std::size_t size, std::size_t expected, const std::string& what) {
  require(size == expected, std::to_string(size) + " " + what + "; this draftd has " + std::to_string(expected));
}

void require_weights(const std::vector<float>& values, const std::string& what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(std::fabs(values[i]) <= kMostWeight, what + " " + std::to_string(i) + " is " + std::to_string(values[i]));
  }
}

std::vector<float> flat(const std::vector<Weights>& sets) {
  std::vector<float> values(sets.size() * Candidate::kInputs);
  std::memcpy(values.data(), sets.data(), sets.size() * sizeof(Weights));
  return values;
}

std::vector<Weights> sets_of(const std::vector<float>& values) {
  std::vector<Weights> sets(values.size() / Candidate::kInputs);
  std::memcpy(sets.data(), values.data(), sets.size() * sizeof(Weights));
  return sets;
}

void check(const ModelTables& tables) {
  require_size(tables.hits.size(), cells::kCount, "hits");
  require_size(tables.trials.size(), cells::kCount, "trials");
  require_size(tables.agreement.size(), cells::kAgreements * Candidate::kInputs, "weights by agreement");
  require_size(tables.standing.size(), cells::kStandings * Candidate::kInputs, "weights by standing");
  require_size(tables.correction.size(), kKnots, "corrections of survival");
  for (std::uint32_t cell = 0; cell < cells::kCount; ++cell) {
    const float hits = tables.hits[cell];
    const float trials = tables.trials[cell];
    require(trials > 0 && std::isfinite(trials) && hits >= 0 && hits <= trials,
            "cell " + std::to_string(cell) + " has " + std::to_string(hits) + " hits of " + std::to_string(trials) +
                " trials");
  }
  require(tables.lessons <= kMostLessons, std::to_string(tables.lessons) + " lessons are more than can be given");
  require_weights(tables.agreement, "weight by agreement");
  require_weights(tables.standing, "weight by standing");
  require_weights(tables.correction, "correction of survival");
}

}  // namespace

ModelTables Model::tables() const {
  const Storage& s = *storage_;
  ModelTables tables;
  tables.lessons = s.lessons;
  tables.hits.reserve(s.counts.size());
  tables.trials.reserve(s.counts.size());
  for (const Count& count : s.counts) {
    tables.hits.push_back(count.hits);
    tables.trials.push_back(count.trials);
  }
  tables.agreement = flat(s.agreement);
  tables.standing = flat(s.standing);
  tables.correction.assign(s.correction.begin(), s.correction.end());
  return tables;
}

Model::Model(const ModelTables& tables) : Model() {
  check(tables);
  Storage& s = *storage_;
  s.lessons = tables.lessons;
  for (std::uint32_t cell = cells::kKnown; cell < cells::kCount; ++cell) {
    s.counts[cell] = {tables.hits[cell], tables.trials[cell]};
  }
  s.weigh_all();
  s.agreement = sets_of(tables.agreement);
  s.standing = sets_of(tables.standing);
  std::copy(tables.correction.begin(), tables.correction.end(), s.correction.begin());
}

}  // namespace draftd
