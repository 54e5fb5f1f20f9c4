// Loading a model from bytes that may be anything. The input is what is
// different from a small intact model; checksums are made right afterwards, or
// no change would get past them. What is taken must come back the same, and
// give probabilities.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "learned.h"
#include "support/xxh64.h"

namespace {

using draftd::Model;
using Bytes = std::vector<std::uint8_t>;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_probability(double value) { return value >= 0.0 && value <= 1.0; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes intact = draftd::testing::taught(1, 20).save();
  Bytes bytes = intact;
  if (size > bytes.size()) bytes.resize(size);
  // The header and the end are where most is to be found.
  const std::size_t half = std::min<std::size_t>(size, 64);
  const auto differ = [](std::uint8_t difference, std::uint8_t byte) { return difference ^ byte; };
  std::transform(data, data + half, bytes.begin(), bytes.begin(), differ);
  const auto end = bytes.end() - static_cast<std::ptrdiff_t>(size - half);
  std::transform(data + half, data + size, end, end, differ);
  const std::uint64_t checksum = draftd::xxh64(std::span(bytes).subspan(16));
  std::memcpy(bytes.data() + 8, &checksum, sizeof(checksum));
  std::unique_ptr<Model> model;
  try {
    model = Model::load(bytes);
  } catch (const std::invalid_argument&) {
    return 0;  // refused, as most are
  }
  require(Model::load(model->save())->save() == model->save());
  std::mt19937 random(1);
  const std::vector<draftd::Candidate> candidates{draftd::testing::random_candidate(random, 1)};
  require(is_probability(draftd::testing::probability(*model, candidates[0])));
  require(is_probability(model->survival(0.5)));
  model->learn(candidates, 1);
  model->learn_survival(0.5, true);
  require(is_probability(draftd::testing::probability(*model, candidates[0])));
  return 0;
}
