// The end of a text, packed the way a segment packs its own: a word holds the
// symbols right before a slot, the nearest in its highest bits, so that several
// are compared at a time, and in the order of the entries.
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
        unused_bits_(64 - symbols_ * segment.width),
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
    std::uint64_t ours = words_[0];
    std::uint64_t theirs = word_before(slot);
    std::uint32_t length = 0;
    for (std::uint32_t word = 1; ours == theirs; ++word) {
      length += symbols_;
      if (length >= length_) return {length_, beyond_};
      if (word == words_packed_) pack();
      ours = words_[word];
      theirs = word_before(slot - length);  // > 0: slot 0 is a separator, with which no token agrees
    }
    const auto equal_bits = static_cast<std::uint32_t>(std::countl_zero(ours ^ theirs));
    length += equal_bits * width_inverse_ >> 16;
    return length < length_ ? Comparison{length, theirs < ours} : Comparison{length_, beyond_};
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
    words_[words_packed_++] = packed << unused_bits_;
  }

  // Before slot 0 there are zeros.
  std::uint64_t word_before(std::uint32_t slot) const {
    const std::uint32_t missing = slot < symbols_ ? symbols_ - slot : 0;
    const std::uint64_t bit = std::uint64_t{slot + missing - symbols_} * segment_->width;
    std::uint64_t packed;
    std::memcpy(&packed, segment_->text + bit / 8, sizeof packed);
    return packed >> bit % 8 << (unused_bits_ + missing * segment_->width);
  }

  const Segment::Layout* segment_;
  std::span<const Token> text_;
  std::uint32_t symbols_;        // in a word: so many can be read at once whatever bit they start at
  std::uint32_t unused_bits_;    // of a word
  std::uint32_t width_inverse_;  // times 2^16, rounded up: dividing by the width takes a multiplication
  std::uint32_t length_;
  std::uint32_t words_packed_ = 0;
  bool beyond_ = false;
  std::array<std::uint64_t, kMaxMatch> words_;
};

}  // namespace draftd
