#include "draft/ppm.h"

namespace draftd {

void Candidates::add(Token added, Source from, double more) {
  std::size_t place = count;
  for (std::size_t i = 0; i < count; ++i) place = token[i] == added ? i : place;
  if (place == count) {
    token[count] = added;
    source[count] = from;
    probability[count++] = more;
  } else {
    probability[place] += more;
  }
}

void score(const Evidence& evidence, const Index* fill, Candidates& candidates) {
  candidates.count = 0;
  double unclaimed = 1.0;
  for (std::size_t number = 0; number < evidence.level_count; ++number) {
    const Level& level = evidence.levels[number];
    const auto total = static_cast<double>(level.total);
    const auto length = static_cast<double>(level.length);
    const double confidence = total / (total + level.distinct) * (length / (length + 1.0));
    const double weight = unclaimed * confidence / total;
    for (const Continuation& follower : evidence.of(number)) {
      candidates.add(follower.token, level.source, weight * follower.count);
    }
    unclaimed *= 1.0 - confidence;
  }
  if (fill != nullptr && fill->tokens() > 0) {
    const double weight = unclaimed / static_cast<double>(fill->tokens());
    for (const FrequentToken& frequent : fill->frequent_tokens()) {
      candidates.add(frequent.token, Source::kFill, weight * frequent.count);
    }
  }
}

}  // namespace draftd
