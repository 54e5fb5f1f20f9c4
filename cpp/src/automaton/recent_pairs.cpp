#include "draftd/recent_pairs.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include "support/pod_vector.h"

namespace draftd {

// A map of numbers alone, for a map grows by doubling.
struct RecentPairs::Storage {
  boost::unordered_flat_map<Token, std::uint32_t> numbers;
  PodVector<Followers> followers;  // by number
};

RecentPairs::RecentPairs() : storage_(std::make_unique<Storage>()) {}
RecentPairs::~RecentPairs() = default;
RecentPairs::RecentPairs(RecentPairs&&) noexcept = default;
RecentPairs& RecentPairs::operator=(RecentPairs&&) noexcept = default;

void RecentPairs::add(Token before, Token after) {
  Storage& s = *storage_;
  const auto [entry, fresh] = s.numbers.try_emplace(before, static_cast<std::uint32_t>(s.followers.size()));
  if (fresh) s.followers.push_back({});
  s.followers[entry->second].add(after);
}

void RecentPairs::add_text(Token before, std::span<const Token> tokens) {
  for (const Token token : tokens) {
    if (before >= 0) add(before, token);
    before = token;
  }
}

const RecentPairs::Followers* RecentPairs::of(Token before) const {
  const Storage& s = *storage_;
  const auto found = s.numbers.find(before);
  return found == s.numbers.end() ? nullptr : &s.followers[found->second];
}

void RecentPairs::Followers::add(Token token) {
  std::uint32_t place = 0;
  while (place < size && tokens[place] != token) ++place;
  float weight = 1.0F;
  for (std::uint32_t i = 0; i < size; ++i) weights[i] *= kKept;
  if (place < size) {
    weight += weights[place];
  } else if (size < kMost) {
    ++size;
  } else {
    --place;  // the one seen longest ago leaves
  }
  for (; place > 0; --place) {
    tokens[place] = tokens[place - 1];
    weights[place] = weights[place - 1];
  }
  tokens[0] = token;
  weights[0] = weight;
}

std::size_t RecentPairs::memory_size() const {
  const Storage& s = *storage_;
  // A byte of bookkeeping for each of 15 in a group of 16.
  const std::size_t map = s.numbers.bucket_count() * (sizeof(*s.numbers.begin()) * 15 + 16) / 15;
  return sizeof(RecentPairs) + sizeof(Storage) + map + s.followers.memory_size();
}

}  // namespace draftd
