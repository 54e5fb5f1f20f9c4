// When a request that drafts can't help is left alone for a while.
#pragma once

#include <algorithm>
#include <cstdint>

namespace draftd {

struct RestRule {
  std::uint32_t after = 0;  // drafts in a row without an accepted node; 0: never
  std::uint32_t steps = 0;  // of the request without a draft, then
};

// After so many rejected drafts in a row a request rests; then one more is tried.
// Each try that fails makes the rest twice as long, up to 16 times; an accepted
// node ends all that.
class Rest {
 public:
  // Nodes of a draft were verified.
  void outcome(bool accepted) {
    if (accepted) *this = {};
    if (!accepted) ++rejected_;
    due_ = !accepted;
  }

  // A draft is wanted now: whether the request rests instead.
  bool now(const RestRule& rule) {
    if (due_ && rule.after > 0 && rejected_ >= rule.after) {
      left_ = std::uint64_t{rule.steps} << doubled_;
      doubled_ = std::min(doubled_ + 1, kMostDoubled);
    }
    due_ = false;
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  static constexpr std::uint32_t kMostDoubled = 4;

  std::uint32_t rejected_ = 0;  // drafts since the last accepted node
  std::uint32_t doubled_ = 0;   // times
  std::uint64_t left_ = 0;      // steps of a rest
  bool due_ = false;            // a rejection that no rest has followed
};

}  // namespace draftd
