#include "draft/ppm.h"

namespace draftd {

void Blend::promise(std::uint32_t known, Token token, Source source, double probability) {
  std::uint32_t place = size_;
  for (std::uint32_t i = 0; i < known; ++i) place = tokens_[i] == token ? i : place;
  if (place == size_) {
    tokens_[place] = token;
    sources_[place] = source;
    probabilities_[place] = probability;
    ++size_;
  } else {
    probabilities_[place] += probability;
  }
}

void Blend::add(const Level& level) {
  const auto total = static_cast<double>(level.total);
  const double escape = level.distinct / (1.0 + level.length / 16.0);
  const double confidence = total / (total + escape) * (level.length / (level.length + 1.0));
  const double weight = unclaimed_ * confidence / total;
  const std::uint32_t known = size_;  // the followers of one context differ
  for (const Level::Follower& follower : level.likeliest()) {
    promise(known, follower.token, level.source, weight * follower.count);
  }
  unclaimed_ *= 1.0 - confidence;
}

void Blend::add(const Fill& fill) {
  const auto weight = unclaimed_ / static_cast<double>(fill.total + fill.distinct);
  const std::uint32_t known = size_;
  for (const FrequentToken& frequent : fill.tokens) {
    promise(known, frequent.token, Source::kFill, weight * frequent.count);
  }
}

}  // namespace draftd
