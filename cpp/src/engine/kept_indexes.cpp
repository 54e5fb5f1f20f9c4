#include "engine/kept_indexes.h"

#include <algorithm>
#include <utility>

#include "support/xxh64.h"

namespace draftd {
namespace {

// Tokens at the end of a text by which candidates are told apart before they are compared.
constexpr std::size_t kEnding = 16;
// Texts that end alike and differ before cost a comparison each: the longest are tried.
constexpr std::size_t kMostCompared = 8;

std::uint64_t hash_of_ending(std::span<const Token> text) {
  const std::span<const Token> ending = text.last(std::min(kEnding, text.size()));
  return xxh64({reinterpret_cast<const std::uint8_t*>(ending.data()), ending.size_bytes()});
}

}  // namespace

void KeptIndexes::keep(std::uint32_t name_space, OwnIndex index, double now, Freed& freed) {
  const std::span<const Token> text = index.text();
  if (text.empty()) return;
  Kept kept{name_space, hash_of_ending(text), text.size(), index.memory_size(), now, nullptr};
  kept.index = std::make_shared<OwnIndex>(std::move(index));
  const std::scoped_lock guard(mutex_);
  tokens_ += kept.length;
  bytes_ += kept.bytes;
  Share& share = shares_[name_space];
  ++share.indexes;
  share.bytes += kept.bytes;
  kept_.push_back(std::move(kept));
  while (kept_.size() > kMost) pop(oldest_of_largest(&Share::indexes), freed);
  while (bytes_ > most_bytes_) pop(oldest_of_largest(&Share::bytes), freed);
}

std::optional<OwnIndex> KeptIndexes::take(std::uint32_t name_space, std::span<const Token> text) {
  const std::scoped_lock guard(mutex_);
  std::vector<std::vector<Kept>::iterator> candidates;
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->name_space != name_space || kept->length > text.size()) continue;
    if (kept->ending == hash_of_ending(text.first(kept->length))) candidates.push_back(kept);
  }
  const std::size_t compared = std::min(candidates.size(), kMostCompared);
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(compared);
  std::partial_sort(candidates.begin(), end, candidates.end(), [](const auto& one, const auto& other) {
    return one->length != other->length ? one->length > other->length : one > other;
  });
  const auto begins_with = [&](const auto& kept) {
    const std::span<const Token> earlier = kept->index->text();
    return std::equal(earlier.begin(), earlier.end(), text.begin());
  };
  const auto found = std::find_if(candidates.begin(), end, begins_with);
  if (found == end) return std::nullopt;
  take_off(**found);
  std::optional<OwnIndex> index = std::move(*(*found)->index);
  kept_.erase(*found);
  return index;
}

void KeptIndexes::expire(double oldest, Freed& freed) {
  drop([=](const Kept& kept) { return kept.since < oldest; }, freed);
}

void KeptIndexes::forget(std::uint32_t name_space, Freed& freed) {
  drop([=](const Kept& kept) { return kept.name_space == name_space; }, freed);
}

bool KeptIndexes::drop_oldest(Freed& freed) {
  const std::scoped_lock guard(mutex_);
  if (kept_.empty()) return false;
  pop(kept_.begin(), freed);
  return true;
}

std::vector<KeptIndexes::Kept>::iterator KeptIndexes::oldest_of_largest(std::size_t Share::* size) {
  const auto largest = std::max_element(shares_.begin(), shares_.end(), [=](const auto& one, const auto& other) {
    return one.second.*size < other.second.*size;
  });
  return std::find_if(kept_.begin(), kept_.end(), [=](const Kept& kept) { return kept.name_space == largest->first; });
}

void KeptIndexes::pop(std::vector<Kept>::iterator gone, Freed& freed) {
  take_off(*gone);
  freed.push_back(std::move(gone->index));
  kept_.erase(gone);
}

template <typename Drops>
void KeptIndexes::drop(const Drops& drops, Freed& freed) {
  const std::scoped_lock guard(mutex_);
  std::erase_if(kept_, [&](Kept& kept) {
    if (!drops(kept)) return false;
    take_off(kept);
    freed.push_back(std::move(kept.index));
    return true;
  });
}

void KeptIndexes::take_off(const Kept& gone) {
  tokens_ -= gone.length;
  bytes_ -= gone.bytes;
  const auto share = shares_.find(gone.name_space);
  share->second.bytes -= gone.bytes;
  if (--share->second.indexes == 0) shares_.erase(share);
}

}  // namespace draftd
