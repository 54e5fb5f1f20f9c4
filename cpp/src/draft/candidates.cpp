#include "draft/candidates.h"

#include "learn/logistic.h"

namespace draftd {
namespace {

// Inputs of the model, after those of the contexts.
constexpr std::size_t kPairs = Candidates::kLevels;
constexpr std::size_t kConstant = Candidate::kBlend + 1;
constexpr std::size_t kDrafted = kConstant + 1;
static_assert(kPairs + 2 == Candidate::kBlend && kDrafted + 1 == Candidate::kInputs);
static_assert(cells::kRanks >= Index::kFrequentTokens);

std::uint64_t remainder_bit(Token token) { return std::uint64_t{1} << (static_cast<std::uint32_t>(token) % 64); }

}  // namespace

Candidates::Candidates() {
  tokens_.fill(FourNumbers{-1, -1, -1, -1});
  defaults_[kConstant] = cells::kConstant;
}

std::uint32_t Candidates::find(Token token) const {
  if ((remainders_ & remainder_bit(token)) == 0) return size_;
  FourNumbers found{};  // its number plus one, in one of the four; tokens differ
  FourNumbers numbers{1, 2, 3, 4};
  for (std::uint32_t i = 0; i < size_; i += 4) {
    found |= (tokens_[i / 4] == token) & numbers;
    numbers += 4;
  }
  const std::int32_t number = (found[0] | found[1]) | (found[2] | found[3]);
  return number == 0 ? size_ : static_cast<std::uint32_t>(number) - 1;
}

std::uint32_t Candidates::place(Token token, Source source, cells::Proposer proposer) {
  const std::uint32_t at = find(token);
  if (at < size_ || size_ == kMost) return at;
  ++size_;
  remainders_ |= remainder_bit(token);
  tokens_[at / 4][at % 4] = token;
  sources_[at] = source;
  standings_[at] = {proposer, 0, 0, 0};
  described_[at].token = token;
  described_[at].cells = defaults_;
  return at;
}

void Candidates::default_cell(std::size_t input, std::uint32_t cell) {
  defaults_[input] = static_cast<std::uint16_t>(cell);
  for (std::uint32_t i = 0; i < size_; ++i) described_[i].cells[input] = defaults_[input];
}

void Candidates::add_drafted(std::span<const DraftedChild> children, std::uint32_t together, std::uint32_t depth) {
  default_cell(kDrafted, cells::undrafted(together, depth));
  for (const DraftedChild& child : children) {
    const std::uint32_t at = place(child.token, Source::kDraftSource, cells::Proposer::kDraftSource);
    described_[at].cells[kDrafted] = static_cast<std::uint16_t>(cells::drafted(child.claim, depth));
  }
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
  if (here == 0) longest_ = cells::longest(length, level.origin);
  default_cell(here, cells::missed(number, level.distinct));
  for (std::uint32_t rank = 0; rank < level.ranked; ++rank) {
    const Level::Follower& follower = level.followers[rank];
    const std::uint32_t at = place(follower.token, level.source, cells::Proposer::kContext);
    if (at == kMost) continue;                       // the next may be known already
    const bool fresh = standings_[at].knowing == 0;  // to contexts
    if (fresh) {
      sources_[at] = level.source;
      const bool drafted = standings_[at].proposer == cells::Proposer::kDraftSource;
      standings_[at].proposer = drafted ? cells::Proposer::kBoth : cells::Proposer::kContext;
      standings_[at].first = static_cast<std::uint8_t>(here);
    }
    if (here == 0) standings_[at].state = rank == 0 ? 2 : 1;
    ++standings_[at].knowing;
    claims_[at] += weight * follower.count;
    const std::uint32_t role_below = fresh ? 2 : 1;
    const std::uint32_t role = here == 0 ? 0 : role_below;
    described_[at].cells[here] =
        static_cast<std::uint16_t>(cells::known(number, cells::share_class(follower.count, level.total),
                                                follower.token == level.latest, follower.recency, role));
  }
}

void Candidates::add_pairs(std::uint32_t slot, Source source, const RecentPairs::Followers& followers) {
  float sum = 0.0F;
  for (std::uint32_t i = 0; i < followers.size; ++i) sum += followers.weights[i];
  default_cell(kPairs + slot, cells::not_paired(slot, followers.size));
  for (std::uint32_t i = 0; i < followers.size; ++i) {
    const std::uint32_t at = place(followers.tokens[i], source, cells::Proposer::kPairs);
    if (at == kMost) continue;  // the next may be known already
    const std::uint32_t share = cells::weight_share_class(followers.weights[i] / sum);
    described_[at].cells[kPairs + slot] = static_cast<std::uint16_t>(cells::paired(slot, i, share, sum));
  }
}

void Candidates::add(const Fill& fill) {
  const double weight = unclaimed_ / static_cast<double>(fill.total + fill.distinct);
  for (std::uint32_t rank = 0; rank < fill.tokens.size(); ++rank) {
    const std::uint32_t known = size_;
    const std::uint32_t at = place(fill.tokens[rank].token, Source::kFill, cells::Proposer::kFrequent);
    if (at == kMost) continue;  // the next may be known already
    claims_[at] += weight * fill.tokens[rank].count;
    if (at == known) described_[at].cells[kConstant] = static_cast<std::uint16_t>(cells::frequent(rank));
  }
}

std::span<const Candidate> Candidates::described() {
  for (std::uint32_t i = 0; i < size_; i += 4) {
    const Four blends = stretch(Four{static_cast<float>(claims_[i]), static_cast<float>(claims_[i + 1]),
                                     static_cast<float>(claims_[i + 2]), static_cast<float>(claims_[i + 3])});
    for (std::uint32_t j = 0; j < 4; ++j) described_[i + j].blend = blends[j];
  }
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Standing& standing = standings_[i];
    Candidate& candidate = described_[i];
    candidate.agreement = static_cast<std::uint16_t>(cells::agreement(standing.first, standing.knowing, levels_));
    candidate.standing = static_cast<std::uint16_t>(cells::standing(standing.proposer, longest_, standing.state));
  }
  return {described_.data(), size_};
}

}  // namespace draftd
