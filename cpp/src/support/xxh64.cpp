#include "support/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace draftd {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

template <typename Word>
Word load(const std::uint8_t* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

std::uint64_t Xxh64::round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

void Xxh64::consume(const std::uint8_t* stripe) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = round(lanes_[i], load<std::uint64_t>(stripe + 8 * i));
}

void Xxh64::update(std::span<const std::uint8_t> bytes) {
  const std::size_t held = size_ % kStripe;
  size_ += bytes.size();
  if (held != 0) {
    const std::size_t taken = std::min(kStripe - held, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + held);
    bytes = bytes.subspan(taken);
    if (held + taken < kStripe) return;
    consume(rest_.data());
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) consume(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Xxh64::digest() const {
  std::uint64_t hash = kPrime5;
  if (size_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size_;
  const std::uint8_t* at = rest_.data();
  const std::uint8_t* const end = at + size_ % kStripe;
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ *at * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::uint64_t xxh64(std::span<const std::uint8_t> bytes) {
  Xxh64 hash;
  hash.update(bytes);
  return hash.digest();
}

}  // namespace draftd
