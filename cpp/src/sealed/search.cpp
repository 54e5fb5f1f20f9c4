#include <algorithm>
#include <utility>
#include <vector>

#include "draftd/nearest.h"
#include "sealed/packed_context.h"

namespace draftd {
namespace {

constexpr std::uint32_t kSampling = kEntriesPerKey;
// Entries are prefetched from so many before the block of the place found by
// the samples to so many behind it.
constexpr std::uint32_t kMargin = Nearest::kMost / 2;

// One context in one segment. While the samples, every kEntriesPerKey-th entry,
// are searched: those before `first` stand before the context, those from
// `first + count` on don't.
struct Probe {
  Probe(const Segment::Layout& searched, std::uint32_t segment_age, std::span<const Token> text, Nearest* nearest,
        std::uint32_t* length)
      : segment(&searched),
        context(searched, text),
        key(context.key()),
        count(static_cast<std::uint32_t>(searched.key_count)),
        age(segment_age),
        found(nearest),
        longest(length) {}

  // The entries among which the place is, in the end: numbers [first, last).
  std::pair<std::uint32_t, std::uint32_t> block() const {
    const std::uint32_t begin = first == 0 ? 0 : (first - 1) * kSampling;
    return {begin, std::min(begin + kSampling, static_cast<std::uint32_t>(segment->entry_count))};
  }
  // These and their neighbours: what is looked at mostly.
  std::pair<std::uint32_t, std::uint32_t> surroundings() const {
    const auto [begin, end] = block();
    return {std::max(begin, kMargin) - kMargin,
            std::min(end + kMargin, static_cast<std::uint32_t>(segment->entry_count))};
  }
  void fetch_entries() const;
  void fetch_text() const;
  void collect();

  const Segment::Layout* segment;
  PackedContext context;
  std::uint64_t key;
  std::uint32_t first = 0;
  std::uint32_t count;
  std::uint32_t first_equal = 0;  // sample whose key is not below the context's
  std::uint32_t slot = 0;         // of the sample under comparison
  std::uint32_t age;              // of the segment's slot 0
  Nearest* found;                 // one of these two
  std::uint32_t* longest;
};

void prefetch_symbols(const Segment::Layout& segment, std::uint32_t slot) {
  __builtin_prefetch(segment.text + std::uint64_t{slot} * segment.width / 8);
}

void prefetch_entry(const Segment::Layout& segment, std::uint32_t entry) {
  __builtin_prefetch(segment.entries + std::uint64_t{entry} * segment.position_width / 8);
}

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

void number_ends(Nearest& found) {
  for (std::uint32_t i = found.size; i-- > 0;) {
    Occurrence& occurrence = found.occurrences[i];
    const bool last = i + 1 == found.size || found.occurrences[i + 1].length < occurrence.length;
    occurrence.end = last ? i + 1 : found.occurrences[i + 1].end;
  }
}

}  // namespace

struct NearestSearch::Storage {
  std::vector<Probe> probes;
  std::vector<Nearest*> found;
  std::vector<Probe*> running;  // those that a stage still works on

  void add(const SegmentSet& set, std::span<const Token> context, Nearest* nearest, std::uint32_t* longest);
  void narrow_by_keys();
  void narrow_by_text();
  void collect();
  template <typename IsBefore>
  void search_keys(IsBefore is_before);
  template <typename Condition>
  void select(Condition condition);
};

NearestSearch::NearestSearch() : storage_(std::make_unique<Storage>()) {}
NearestSearch::~NearestSearch() = default;

void NearestSearch::clear() {
  storage_->probes.clear();
  storage_->found.clear();
}

void NearestSearch::add(const SegmentSet& set, std::span<const Token> context, Nearest& found) {
  found.size = 0;
  storage_->found.push_back(&found);
  storage_->add(set, context, &found, nullptr);
}

void NearestSearch::add(const SegmentSet& set, std::span<const Token> context, std::uint32_t& longest) {
  longest = 0;
  storage_->add(set, context, nullptr, &longest);
}

void NearestSearch::run() {
  storage_->narrow_by_keys();
  storage_->narrow_by_text();
  storage_->collect();
}

void NearestSearch::Storage::add(const SegmentSet& set, std::span<const Token> context, Nearest* nearest,
                                 std::uint32_t* longest) {
  if (context.empty()) return;
  std::uint32_t age = 0;
  for (const auto& segment : set) age += static_cast<std::uint32_t>(segment->layout().slots);
  // The newest first: of equally long matches its are kept.
  for (std::size_t i = set.size(); i-- > 0;) {
    const Segment::Layout& segment = set[i]->layout();
    age -= static_cast<std::uint32_t>(segment.slots);
    probes.emplace_back(segment, age, context, nearest, longest);
  }
}

// Starts a stage with the probes that meet the condition.
template <typename Condition>
void NearestSearch::Storage::select(Condition condition) {
  running.clear();
  for (Probe& probe : probes) {
    if (condition(probe)) running.push_back(&probe);
  }
}

// A step of every probe's binary search in turn, until all are done.
template <typename IsBefore>
void NearestSearch::Storage::search_keys(IsBefore is_before) {
  select([](Probe& probe) {
    __builtin_prefetch(probe.segment->keys + probe.first + probe.count / 2);
    return probe.count > 0;
  });
  while (!running.empty()) {
    std::erase_if(running, [&](Probe* probe) {
      const std::uint32_t half = probe->count / 2;
      const bool behind = is_before(probe->segment->keys[probe->first + half], probe->key);
      probe->first += behind ? half + 1 : 0;
      probe->count = behind ? probe->count - half - 1 : half;
      __builtin_prefetch(probe->segment->keys + probe->first + probe->count / 2);
      return probe->count == 0;
    });
  }
}

// Stage 1: the samples whose key equals the context's.
void NearestSearch::Storage::narrow_by_keys() {
  search_keys([](std::uint64_t sample, std::uint64_t key) { return sample < key; });
  for (Probe& probe : probes) {
    const auto samples = static_cast<std::uint32_t>(probe.segment->key_count);
    probe.first_equal = probe.first;
    // Few samples share a key: the last is looked for at doubling distances.
    std::uint32_t width = 1;
    while (probe.first + width < samples && probe.segment->keys[probe.first + width - 1] <= probe.key) width *= 2;
    probe.count = std::min(width, samples - probe.first);
  }
  search_keys([](std::uint64_t sample, std::uint64_t key) { return sample <= key; });
  for (Probe& probe : probes) {
    probe.count = probe.first - probe.first_equal;
    probe.first = probe.first_equal;
  }
}

// Stage 2: of these, how many stand before the context.
void NearestSearch::Storage::narrow_by_text() {
  const auto middle = [](const Probe& probe) { return (probe.first + probe.count / 2) * kSampling; };
  select([&](Probe& probe) {
    if (probe.count > 0) prefetch_entry(*probe.segment, middle(probe));
    return probe.count > 0;
  });
  while (!running.empty()) {
    for (Probe* probe : running) {
      probe->slot = probe->segment->entry(middle(*probe));
      prefetch_symbols(*probe->segment, probe->slot - 1);
    }
    std::erase_if(running, [&](Probe* probe) {
      const std::uint32_t half = probe->count / 2;
      const bool behind = probe->context.compare(probe->slot).before;
      probe->first += behind ? half + 1 : 0;
      probe->count = behind ? probe->count - half - 1 : half;
      if (probe->count > 0) prefetch_entry(*probe->segment, middle(*probe));
      return probe->count == 0;
    });
  }
}

// Stage 3: the place among the entries between the last sample before the
// context and the first behind it, and the nearest to it. Few probes ahead, for
// what is brought in for all at once would drive itself out again.
void NearestSearch::Storage::collect() {
  constexpr std::size_t kEntriesAhead = 16;
  constexpr std::size_t kTextAhead = 8;
  for (std::size_t i = 0; i < probes.size() + kEntriesAhead; ++i) {
    if (i < probes.size()) probes[i].fetch_entries();
    if (i >= kTextAhead && i - kTextAhead < probes.size()) probes[i - kTextAhead].fetch_text();
    if (i >= kEntriesAhead) probes[i - kEntriesAhead].collect();
  }
  for (Nearest* nearest : found) number_ends(*nearest);
}

}  // namespace draftd
