#include <algorithm>
#include <vector>

#include "draftd/nearest.h"
#include "sealed/probe.h"

namespace draftd {
namespace {

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
  const auto middle = [](const Probe& probe) { return (probe.first + probe.count / 2) * kEntriesPerKey; };
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
