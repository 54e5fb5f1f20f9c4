// Sorting suffixes in linear time by induced sorting: Nong, Zhang and Chan,
// "Two Efficient Algorithms for Linear Time Suffix Array Construction", 2011.
//
// A suffix is of type L if it is larger than the one a symbol shorter, else of
// type S; the empty suffix is smaller than any. In each bucket (the suffixes
// with the same first symbol) the Ls come before the Ss. An LMS suffix is an S
// behind an L. Once these are in order, a scan to the right puts the Ls in
// order and a scan to the left the Ss, since each suffix follows, in its
// bucket, the order of the suffixes that are one symbol shorter. The same two
// scans order the LMS substrings (from one LMS position to the next); with
// their ranks as symbols, the LMS suffixes are a text of at most half the
// length, which is sorted in the same way, inside the memory of the result.
//
// Most of the time goes into waiting for memory: the scans jump around in the
// text and in the buckets. So they ask for what they will need some entries
// ahead: first the text before a suffix, then the place it will be written to.
#include "sealed/suffix_sort.h"

#include <algorithm>
#include "support/large_array.h"

namespace draftd {
namespace {

using Position = std::int32_t;

// Entries that the scans look ahead.
constexpr Position kAhead = 32;

// Prefetching an address that turns out to be wrong costs next to nothing.
inline void will_read(const Position* at) { __builtin_prefetch(at, 0); }
inline void will_write(const Position* at) { __builtin_prefetch(at, 1); }

class SuffixSort {
 public:
  SuffixSort(std::span<const Position> text, Position alphabet, std::span<Position> order)
      : text_(text.data()),
        order_(order.data()),
        size_(static_cast<Position>(text.size())),
        bucket_ends_(static_cast<std::size_t>(alphabet)),
        places_(static_cast<std::size_t>(alphabet)) {
    for (const Position symbol : text) ++bucket_ends_[static_cast<std::size_t>(symbol)];
    Position end = 0;
    for (Position& bucket_end : bucket_ends_.all()) bucket_end = end += bucket_end;
  }

  void run() {
    std::fill_n(order_, size_, 0);
    const Position count = place_lms_suffixes();
    if (count > 1) {
      order_lms_substrings();
      order_lms_suffixes(count);
      spread_lms_suffixes(count);
    }
    order_all_suffixes();
  }

 private:
  // An entry of order_ is the start of a suffix, the complement of one, or 0
  // where there is none yet. A scan puts the suffix that is a symbol longer
  // into its bucket; a complement says that it is the other scan's to put.

  // Puts the LMS suffixes into their buckets, in any order; returns how many there are.
  Position place_lms_suffixes() {
    start_at_bucket_ends();
    Position count = 0;
    each_lms_position([&](Position start) {
      order_[--place(text_[start])] = start;
      ++count;
    });
    return count;
  }

  // Leaves the LMS suffixes alone in order_, at its front, in the order of their LMS substrings.
  void order_lms_substrings() {
    start_at_bucket_starts();
    put_last_suffix();
    scan_right([this](Position i) {
      const Position start = order_[i];
      if (start > 0) {
        order_[i] = 0;
        put_l(start - 1);
      } else if (start < 0) {
        order_[i] = ~start;
      }
    });
    start_at_bucket_ends();
    scan_left([this](Position i) {
      const Position start = order_[i];
      if (start > 0) {
        order_[i] = 0;
        put_s(start - 1, false);
      }
    });
    Position count = 0;
    for (Position i = 0; i < size_; ++i) {
      if (order_[i] < 0) order_[count++] = ~order_[i];
    }
  }

  void order_all_suffixes() {
    start_at_bucket_starts();
    put_last_suffix();
    scan_right([this](Position i) {
      const Position start = order_[i];
      order_[i] = ~start;
      if (start > 0) put_l(start - 1);
    });
    start_at_bucket_ends();
    scan_left([this](Position i) {
      const Position start = order_[i];
      if (start > 0) {
        put_s(start - 1, true);
      } else {
        order_[i] = ~start;
      }
    });
  }

  // The rest of the text behind it is empty, so it is an L.
  void put_last_suffix() { put_l(size_ - 1); }

  void put_l(Position start) {
    const Position symbol = text_[start];
    const bool is_leftmost = start > 0 && text_[start - 1] < symbol;
    order_[place(symbol)++] = is_leftmost ? ~start : start;
  }

  // No suffix is longer than the whole text; whether that one is kept is told by `keeps_whole`.
  void put_s(Position start, bool keeps_whole) {
    const Position symbol = text_[start];
    const bool is_leftmost = start > 0 ? text_[start - 1] > symbol : keeps_whole;
    order_[--place(symbol)] = is_leftmost ? ~start : start;
  }

  // Sorts the LMS suffixes, which are at the front in the order of their LMS substrings.
  void order_lms_suffixes(Position count) {
    const Position names = name_lms_substrings(count);
    if (names == count) return;
    // In the order of the text, at the end of the memory.
    Position* const reduced = order_ + size_ - count;
    Position* into = order_ + size_;
    for (Position i = std::min(size_ / 2, size_ - count - 1); i >= 0; --i) {
      if (order_[count + i] != 0) *--into = order_[count + i] - 1;
    }
    const auto length = static_cast<std::size_t>(count);
    SuffixSort({reduced, length}, names, {order_, length}).run();

    into = order_ + size_;
    each_lms_position([&](Position start) { *--into = start; });
    for (Position i = 0; i < count; ++i) {
      if (i + kAhead < count) will_read(reduced + order_[i + kAhead]);
      order_[i] = reduced[order_[i]];
    }
  }

  // Behind the `count` LMS suffixes, writes for each its rank among the
  // different LMS substrings, from 1; returns the largest. Two LMS positions
  // are never neighbours, so half the position is a place of its own.
  Position name_lms_substrings(Position count) {
    Position* const names = order_ + count;
    std::fill(names, order_ + size_, 0);
    // Lengths first. The last substring ends with the text and is unlike any other.
    Position next = 0;
    each_lms_position([&](Position start) {
      names[start / 2] = next == 0 ? 0 : next - start + 1;
      next = start;
    });
    Position name = 0;
    Position previous = 0;
    Position previous_length = -1;
    for (Position i = 0; i < count; ++i) {
      if (i + kAhead < count) {
        const Position ahead = order_[i + kAhead];
        will_read(text_ + ahead);
        will_write(names + ahead / 2);
      }
      const Position start = order_[i];
      const Position length = names[start / 2];
      if (length != previous_length || length == 0 || !are_equal(start, previous, length)) ++name;
      names[start / 2] = name;
      previous = start;
      previous_length = length;
    }
    return name;
  }

  // Moves the sorted LMS suffixes from the front to the ends of their buckets.
  void spread_lms_suffixes(Position count) {
    start_at_bucket_ends();
    std::fill(order_ + count, order_ + size_, 0);
    for (Position i = count - 1; i >= 0; --i) {
      if (i >= kAhead) will_read(text_ + order_[i - kAhead]);
      const Position start = order_[i];
      order_[i] = 0;
      order_[--place(text_[start])] = start;
    }
  }

  // Most are a few symbols long: no call is worth it.
  bool are_equal(Position a, Position b, Position length) const {
    Position i = 0;
    while (i < length && text_[a + i] == text_[b + i]) ++i;
    return i == length;
  }

  Position& place(Position symbol) { return places_[static_cast<std::size_t>(symbol)]; }

  void start_at_bucket_starts() {
    places_[0] = 0;
    std::copy_n(bucket_ends_.data(), bucket_ends_.size() - 1, places_.data() + 1);
  }

  void start_at_bucket_ends() { std::copy_n(bucket_ends_.data(), bucket_ends_.size(), places_.data()); }

  // Calls `visit` with each LMS position, from the last to the first.
  template <typename Visit>
  void each_lms_position(Visit visit) const {
    bool is_s = false;
    Position next = text_[size_ - 1];
    for (Position i = size_ - 2; i >= 0; --i) {
      const Position here = text_[i];
      const bool was_s = is_s;
      is_s = here < next || (here == next && is_s);
      if (was_s && !is_s) visit(i + 1);
      next = here;
    }
  }

  template <typename Visit>
  void scan_right(Visit visit) {
    Position i = 0;
    for (; i + 2 * kAhead < size_; ++i) {
      hint(i, 1);
      visit(i);
    }
    for (; i < size_; ++i) visit(i);
  }

  template <typename Visit>
  void scan_left(Visit visit) {
    Position i = size_ - 1;
    for (; i >= 2 * kAhead; --i) {
      hint(i, -1);
      visit(i);
    }
    for (; i >= 0; --i) visit(i);
  }

  // Asks for what the entries ahead of entry i will need.
  void hint(Position i, Position direction) const {
    const Position far = order_[i + direction * 2 * kAhead];
    will_read(text_ + std::max(far, 1) - 1);
    const Position near = std::max(order_[i + direction * kAhead], 1);
    will_write(order_ + places_[static_cast<std::size_t>(text_[near - 1])]);
  }

  const Position* text_;
  Position* order_;
  Position size_;
  LargeArray<Position> bucket_ends_;
  LargeArray<Position> places_;  // in each bucket, where the next suffix goes
};

}  // namespace

void sort_suffixes(std::span<const std::int32_t> text, std::int32_t alphabet, std::span<std::int32_t> order) {
  if (!text.empty()) SuffixSort(text, alphabet, order).run();
}

}  // namespace draftd
