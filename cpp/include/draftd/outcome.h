// What the text that came says of the drafts before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draftd/drafting.h"
#include "draftd/model.h"
#include "draftd/types.h"

namespace draftd {

// What the verifier says about the tail it used for a commit.
struct Verified {
  static constexpr std::uint32_t kNoTail = UINT32_MAX;
  static constexpr std::int32_t kAll = -1;
  static constexpr std::int32_t kBitmap = -2;

  std::uint32_t tail_base = kNoTail;
  std::int32_t nodes = kAll;             // how many, in order; or kAll; or kBitmap
  std::span<const std::uint8_t> bitmap;  // one byte per node

  bool went_through(std::size_t node) const;
};

// A draft as it was delivered.
struct Tail {
  // Goes on with a path from the root, as far as the tokens lead through nodes that went through the target.
  void follow(std::span<const Token> tokens, const Verified& verified, std::vector<std::uint16_t>& path) const;
  std::size_t memory_size() const { return nodes.capacity() * sizeof(DraftNode) + raw.capacity() * sizeof(double); }

  std::uint32_t base = Verified::kNoTail;  // the committed length that it continues
  std::vector<DraftNode> nodes;
  std::vector<double> raw;  // survival of each before it was corrected; none where a preset drafted
};

// Verified and accepted nodes by depth, summed over steps; depth 1, the first that was verified, is entry 0.
struct Acceptance {
  std::uint64_t steps = 0;    // verify steps: commits that brought new tokens, but for prefill's
  std::uint64_t drafts = 0;   // of them, those in which nodes of a tail of ours went through the target
  std::uint64_t covered = 0;  // of them, those that accepted at least one node
  std::vector<std::uint64_t> verified;
  std::vector<std::uint64_t> accepted;

  void add(const Acceptance& other);
  void clear();  // keeps its memory
};

// What a model learns of a commit.
struct Outcome {
  // A node that went through the target.
  struct Judged {
    double raw;  // its survival, before it was corrected, given what was committed when it was verified
    bool accepted;
  };

  // Of the last tail what followed the root and each node that the text went through; what became of judged nodes.
  void teach(Model& model) const;
  bool empty() const { return lesson.end.empty() && judged.empty(); }
  std::size_t memory_size() const {
    return lesson.memory_size() + path.capacity() * sizeof(std::uint16_t) + followed.capacity() * sizeof(Token) +
           judged.capacity() * sizeof(Judged);
  }

  Lesson lesson;                    // what the last tail was made from; empty where a preset drafted
  std::vector<std::uint16_t> path;  // its nodes that the text went through
  std::vector<Token> followed;      // the root, and each node of the path
  std::vector<Judged> judged;
};

}  // namespace draftd
