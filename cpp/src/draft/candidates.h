// The possible continuations of one node: who knows them, and how well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "draft/evidence.h"
#include "draftd/drafting.h"
#include "learn/cells.h"
#include "learn/logistic.h"

namespace draftd {

// A continuation that a draft source has, and what it says of it: a class of the model's cells.
struct DraftedChild {
  Token token;
  std::uint32_t claim;
};

class Candidates {
 public:
  Candidates();

  // Contexts asked per node. One more gains nothing.
  static constexpr std::size_t kLevels = cells::kLevels;
  // Later ones are left out. Without this there are 15 % more, for 0.01 % of emitted tokens.
  static constexpr std::uint32_t kMost = Model::kMostCandidates;
  // Of a draft source: there is to be room for others.
  static constexpr std::uint32_t kMostDrafted = 8;

  // What the contexts leave to tokens that they don't know, as prediction by
  // partial matching has it.
  double unclaimed() const { return unclaimed_; }
  // Before all others: what a draft source has there, at most kMostDrafted, as nodes of that depth, and what it claims
  // of all of them together.
  void add_drafted(std::span<const DraftedChild> children, std::uint32_t together, std::uint32_t depth);
  // At most kLevels times, longest first.
  void add(const Level& level);
  // Slot 0: what followed the node's token in the request, 1: in the history.
  void add_pairs(std::uint32_t slot, Source source, const RecentPairs::Followers& followers);
  // Shares out what the contexts left among frequent tokens, by method C too: a
  // short text's frequencies say little.
  void add(const Fill& fill);

  // As the model sees them, in the order first seen.
  std::span<const Candidate> described();
  Source source(std::size_t i) const { return sources_[i]; }  // the longest context's that has it, if one has

 private:
  // Who knows a candidate.
  struct Standing {
    cells::Proposer proposer;
    std::uint8_t first;    // the longest context that has it
    std::uint8_t knowing;  // contexts that have it
    std::uint8_t state;    // at the longest context: 0 absent, 1 present, 2 the likeliest
  };

  // The place of the token, a new one if need be; kMost: there is no room.
  std::uint32_t place(Token token, Source source, cells::Proposer proposer);
  // The place of a token; size() where it is new.
  std::uint32_t find(Token token) const;
  // From here on a candidate that doesn't say otherwise has this cell.
  void default_cell(std::size_t input, std::uint32_t cell);

  // As a column, so that a token is found by comparing several at a time; what is not used is no token.
  std::array<FourNumbers, kMost / 4> tokens_;
  std::array<double, kMost> claims_{};  // by the blend
  std::array<Source, kMost> sources_;
  std::array<Standing, kMost> standings_;
  std::array<Candidate, kMost> described_;
  decltype(Candidate::cells) defaults_{};
  std::uint32_t longest_ = 0;  // weights by the longest context
  std::uint32_t levels_ = 0;
  std::uint32_t size_ = 0;
  std::uint64_t remainders_ = 0;  // of the tokens by 64, a bit for each: most that are new need no search
  double unclaimed_ = 1.0;
};

}  // namespace draftd
