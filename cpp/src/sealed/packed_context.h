// The end of a text, packed the way a segment packs its own: the word read
// right before a slot holds the symbols there, the nearest in the highest bits,
// so that several are compared at a time, and in the order of the entries.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "draftd/types.h"
#include "sealed/layout.h"

namespace draftd {

class PackedContext {
 public:
  PackedContext(const Segment::Layout& segment, std::span<const Token> text)
      : segment_(&segment),
        text_(text.last(std::min<std::size_t>(text.size(), kMaxMatch))),
        symbols_(57 / segment.width),
        bits_(symbols_ * segment.width),
        width_inverse_((1U << 16) / segment.width + 1),
        length_(static_cast<std::uint32_t>(text_.size())) {
    pack();
  }

  struct Comparison {
    std::uint32_t agreement;  // tokens of the context that stand right before the slot
    bool before;              // the slot's entry stands before the context
  };
  // An entry that goes on where the context ends stands behind it.
  Comparison compare(std::uint32_t slot) {
    for (std::uint32_t length = 0; length < length_; length += symbols_) {
      if (words_packed_ * symbols_ <= length) pack();
      const std::uint64_t ours = words_[length / symbols_];
      const std::uint64_t theirs = word_before(slot, length);
      if (ours == theirs) continue;
      const auto equal_bits = static_cast<std::uint32_t>(std::countl_zero((ours ^ theirs) << (64 - bits_)));
      const std::uint32_t agreement = length + (equal_bits * width_inverse_ >> 16);
      if (agreement < length_) return {agreement, theirs < ours};
    }
    return {length_, beyond_};
  }

  // What the keys of the segment are to be compared with. Entries with a lower
  // one stand before the context, those with a higher one behind it.
  std::uint64_t key() const {
    const std::uint64_t largest = (std::uint64_t{1} << segment_->width) - 1;
    std::uint64_t key = 0;
    bool beyond = false;
    for (std::size_t i = 0; i < segment_->key_symbols; ++i) {
      const std::uint64_t next = i < text_.size() ? symbol(i) : 0;
      beyond = beyond || next > largest;
      key = key << segment_->width | (beyond ? largest : next);
    }
    return key;
  }

 private:
  std::uint32_t symbol(std::size_t i) const { return static_cast<std::uint32_t>(text_[text_.size() - 1 - i]) + 1; }

  // Packs one more word; past the end of the context there are zeros. Most
  // comparisons end in the first or second.
  void pack() {
    std::uint64_t packed = 0;
    for (std::uint32_t i = words_packed_ * symbols_; i < (words_packed_ + 1) * symbols_; ++i) {
      if (i < length_ && (std::uint64_t{symbol(i)} >> segment_->width) != 0) {
        // No symbol of the segment can hold it. The context agrees with nothing
        // from here on, and stands behind all that agrees so far.
        length_ = i;
        beyond_ = true;
      }
      packed = packed << segment_->width | (i < length_ ? symbol(i) : 0);
    }
    words_[words_packed_++] = packed;
  }

  // The word that ends `skipped` symbols before `slot`; before slot 0 there are zeros.
  std::uint64_t word_before(std::uint32_t slot, std::uint32_t skipped) const {
    const std::uint32_t end = slot - std::min(slot, skipped);
    const std::uint32_t held = std::min(end, symbols_);
    const std::uint64_t bit = std::uint64_t{end - held} * segment_->width;
    std::uint64_t packed;
    std::memcpy(&packed, segment_->text + bit / 8, sizeof packed);
    packed = packed >> bit % 8 << (symbols_ - held) * segment_->width;
    return packed & ((std::uint64_t{1} << bits_) - 1);
  }

  const Segment::Layout* segment_;
  std::span<const Token> text_;
  std::uint32_t symbols_;        // in a word: so many can be read at once whatever bit they start at
  std::uint32_t bits_;           // of them
  std::uint32_t width_inverse_;  // times 2^16, rounded up: dividing by the width takes a multiplication
  std::uint32_t length_;
  std::uint32_t words_packed_ = 0;
  bool beyond_ = false;
  std::array<std::uint64_t, kMaxMatch> words_;
};

}  // namespace draftd
