#include "sealed/probe.h"

#include <algorithm>

namespace draftd {
namespace {

// Entries are prefetched from so many before the block of the place found by
// the samples to so many behind it.
constexpr std::uint32_t kMargin = Nearest::kMost / 2;

// The smallest number in [first, first + count) for which it does not hold;
// it holds for those below. `first + count` if it holds for all.
template <typename Holds>
std::uint32_t partition_point(std::uint32_t first, std::uint32_t count, Holds holds) {
  while (count > 0) {
    const std::uint32_t half = count / 2;
    const bool behind = holds(first + half);
    first += behind ? half + 1 : 0;
    count = behind ? count - half - 1 : half;
  }
  return first;
}

// The greatest length that is not kept any more.
std::uint32_t too_short(const Nearest& found) {
  return found.size == Nearest::kMost ? found.occurrences.back().length : 0;
}

// Keeps the longest of all segments, longest first; of equally long ones those
// that come first.
void keep(Nearest& found, const Occurrence& occurrence) {
  if (found.size < Nearest::kMost) ++found.size;
  std::uint32_t place = found.size - 1;
  for (; place > 0 && found.occurrences[place - 1].length < occurrence.length; --place) {
    found.occurrences[place] = found.occurrences[place - 1];
  }
  found.occurrences[place] = occurrence;
}

// The entries around a place, the longer agreement first: it never grows with
// the distance. Ties go to those that stand behind the context.
class Neighbours {
 public:
  Neighbours(const Segment::Layout& segment, PackedContext& context, std::uint32_t place)
      : segment_(segment), context_(context), below_{place, 0, 0}, above_{place, 0, 0} {
    look_below();
    look_above();
  }

  std::uint32_t longest() const { return std::max(below_.length, above_.length); }
  // The next one's slot; there is one while `longest` is not 0.
  std::uint32_t take() {
    const bool from_above = above_.length >= below_.length;
    const std::uint32_t slot = from_above ? above_.slot : below_.slot;
    if (from_above) {
      ++above_.entry;
      look_above();
    } else {
      --below_.entry;
      look_below();
    }
    return slot;
  }

 private:
  struct Side {
    std::uint32_t entry;
    std::uint32_t slot;
    std::uint32_t length;  // 0: none is left
  };

  void look_below() { look(below_, below_.entry > 0, below_.entry - 1); }
  void look_above() { look(above_, above_.entry < segment_.entry_count, above_.entry); }
  void look(Side& side, bool there_is_one, std::uint32_t entry) {
    if (there_is_one) side.slot = segment_.entry(entry);
    side.length = there_is_one ? context_.compare(side.slot).agreement : 0;
  }

  const Segment::Layout& segment_;
  PackedContext& context_;
  Side below_;
  Side above_;
};

}  // namespace

// The entries among which the place is: numbers [first, last).
std::pair<std::uint32_t, std::uint32_t> Probe::block() const {
  const std::uint32_t begin = first == 0 ? 0 : (first - 1) * kEntriesPerKey;
  return {begin, std::min(begin + kEntriesPerKey, static_cast<std::uint32_t>(segment->entry_count))};
}

// These and their neighbours: what is looked at mostly.
std::pair<std::uint32_t, std::uint32_t> Probe::surroundings() const {
  const auto [begin, end] = block();
  return {std::max(begin, kMargin) - kMargin,
          std::min(end + kMargin, static_cast<std::uint32_t>(segment->entry_count))};
}

void Probe::fetch_entries() const {
  const auto [begin, end] = surroundings();
  prefetch_entry(*segment, begin);
  prefetch_entry(*segment, (begin + end) / 2);
  prefetch_entry(*segment, end);
}

void Probe::fetch_text() const {
  const auto [begin, end] = surroundings();
  for (std::uint32_t entry = begin; entry < end; ++entry) prefetch_symbols(*segment, segment->entry(entry) - 1);
}

void Probe::collect() {
  const auto [begin, end] = block();
  const std::uint32_t place = partition_point(
      begin, end - begin, [&](std::uint32_t entry) { return context.compare(segment->entry(entry)).before; });
  Neighbours neighbours(*segment, context, place);
  if (longest != nullptr) {
    *longest = std::max(*longest, neighbours.longest());
    return;
  }
  for (std::uint32_t taken = 0; taken < Nearest::kMost; ++taken) {
    const std::uint32_t length = neighbours.longest();
    if (length <= too_short(*found)) return;
    const std::uint32_t slot = neighbours.take();
    keep(*found, {segment, slot, age + slot, length, 0});
  }
}

}  // namespace draftd
