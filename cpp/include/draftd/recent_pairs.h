// What followed each token lately, whatever stood before it: evidence where
// every longer context is silent, or has too many followers to say anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "draftd/types.h"

namespace draftd {

class RecentPairs {
 public:
  RecentPairs();
  ~RecentPairs();
  RecentPairs(RecentPairs&&) noexcept;
  RecentPairs& operator=(RecentPairs&&) noexcept;

  // A token's followers, the latest first.
  struct Followers {
    static constexpr std::uint32_t kMost = 6;
    // What is left of all weights when another follower is seen, which gets 1 more.
    static constexpr float kKept = 0.9F;

    std::array<Token, kMost> tokens;
    std::array<float, kMost> weights;
    std::uint32_t size = 0;

    void add(Token token);
  };

  void add(Token before, Token after);
  // Each token of `tokens` after the one before it; the first after `before`, if that is a token.
  void add_text(Token before, std::span<const Token> tokens);
  // nullptr when nothing followed yet; valid until the next add().
  const Followers* of(Token before) const;
  std::size_t memory_size() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
