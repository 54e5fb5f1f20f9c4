#include "draft/candidates.h"

#include <algorithm>

#include "learn/logistic.h"

namespace draftd {
namespace {

// Inputs of the model, after those of the contexts.
constexpr std::size_t kPairs = Candidates::kLevels;
constexpr std::size_t kConstant = Candidate::kBlend + 1;
static_assert(kPairs + 2 == Candidate::kBlend);

}  // namespace

Candidates::Candidates() {
  tokens_.fill(-1);
  defaults_[kConstant] = cells::kConstant;
}

std::uint32_t Candidates::place(Token token, Source source, cells::Proposer proposer) {
  std::uint32_t number = 0;  // plus one; tokens differ
  for (std::uint32_t i = 0; i < kMost; ++i) number |= tokens_[i] == token ? i + 1 : 0;
  if (number != 0) return number - 1;
  if (size_ == kMost) return kMost;
  const std::uint32_t fresh = size_++;
  tokens_[fresh] = token;
  claims_[fresh] = 0.0;
  sources_[fresh] = source;
  standings_[fresh] = {proposer, 0, 0, 0};
  described_[fresh].cells = defaults_;
  return fresh;
}

void Candidates::default_cell(std::size_t input, std::uint32_t cell) {
  defaults_[input] = static_cast<std::uint16_t>(cell);
  for (std::uint32_t i = 0; i < size_; ++i) described_[i].cells[input] = defaults_[input];
}

// The blend is prediction by partial matching, method C (Moffat 1990). A context
// of length L whose followers were counted `total` times, `distinct` different
// ones, is trusted with
//     confidence = total / (total + distinct / (1 + L / 16)) * L / (L + 1)
// of what longer contexts left unclaimed. PPM-C is total / (total + distinct);
// long contexts surprise less often than it says, and short ones coincide by
// chance.
void Candidates::add(const Level& level) {
  const auto total = static_cast<double>(level.total);
  const double escape = level.distinct / (1.0 + level.length / 16.0);
  const double confidence = total / (total + escape) * (level.length / (level.length + 1.0));
  const double weight = unclaimed_ * confidence / total;
  unclaimed_ *= 1.0 - confidence;

  const auto length = static_cast<std::uint32_t>(level.length);
  const std::uint32_t number = cells::context(level.origin, length, level.total);
  const std::uint32_t here = levels_++;
  const std::uint32_t known = size_;  // to longer contexts
  contexts_[here] = {number, length, level.origin};
  default_cell(here, cells::missed(number, level.distinct));
  for (std::uint32_t rank = 0; rank < level.ranked; ++rank) {
    const Level::Follower& follower = level.followers[rank];
    const std::uint32_t at = place(follower.token, level.source, cells::Proposer::kContext);
    if (at == kMost) return;
    const bool fresh = at >= known;
    if (fresh) standings_[at].first = static_cast<std::uint8_t>(here);
    if (here == 0) standings_[at].state = rank == 0 ? 2 : 1;
    ++standings_[at].knowing;
    claims_[at] += weight * follower.count;
    const std::uint32_t role = here == 0 ? 0 : fresh ? 2 : 1;
    described_[at].cells[here] =
        static_cast<std::uint16_t>(cells::known(number, cells::share_class(follower.count, level.total),
                                                follower.token == level.latest, follower.recency, role));
  }
}

void Candidates::add_pairs(std::uint32_t slot, const RecentPairs::Followers& followers) {
  float sum = 0.0F;
  for (std::uint32_t i = 0; i < followers.size; ++i) sum += followers.weights[i];
  default_cell(kPairs + slot, cells::not_paired(slot, followers.size));
  const Source source = slot == 0 ? Source::kOwnText : Source::kSharedHistory;
  for (std::uint32_t i = 0; i < followers.size; ++i) {
    const std::uint32_t at = place(followers.tokens[i], source, cells::Proposer::kPairs);
    if (at == kMost) return;
    const std::uint32_t share = cells::weight_share_class(followers.weights[i] / sum);
    described_[at].cells[kPairs + slot] = static_cast<std::uint16_t>(cells::paired(slot, i, share, sum));
  }
}

void Candidates::add(const Fill& fill) {
  const double weight = unclaimed_ / static_cast<double>(fill.total + fill.distinct);
  for (std::uint32_t rank = 0; rank < fill.tokens.size(); ++rank) {
    const std::uint32_t known = size_;
    const std::uint32_t at = place(fill.tokens[rank].token, Source::kFill, cells::Proposer::kFrequent);
    if (at == kMost) return;
    claims_[at] += weight * fill.tokens[rank].count;
    if (at == known) described_[at].cells[kConstant] = static_cast<std::uint16_t>(cells::frequent(rank));
  }
}

std::span<const Candidate> Candidates::described() {
  for (std::uint32_t i = 0; i < size_; ++i) blends_[i] = stretch(static_cast<float>(claims_[i]));
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Standing& standing = standings_[i];
    Candidate& candidate = described_[i];
    candidate.token = tokens_[i];
    candidate.blend = blends_[i];
    candidate.agreement = static_cast<std::uint16_t>(cells::agreement(standing.first, standing.knowing, levels_));
    candidate.standing = static_cast<std::uint16_t>(
        levels_ == 0 ? cells::standing(standing.proposer)
                     : cells::standing(standing.proposer, contexts_[0].length, contexts_[0].origin, standing.state));
  }
  return {described_.data(), size_};
}

}  // namespace draftd
