// XXH64, the checksum of segment files and journals, after its public
// specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md); the seed is 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace draftd {

// Over bytes that arrive in pieces.
class Xxh64 {
 public:
  void update(std::span<const std::uint8_t> bytes);
  std::uint64_t digest() const;

 private:
  static constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87;
  static constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
  static constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9;
  static constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
  static constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5;
  static constexpr std::size_t kStripe = 32;  // bytes: one word for each lane

  static std::uint64_t round(std::uint64_t lane, std::uint64_t word);
  void consume(const std::uint8_t* stripe);

  std::array<std::uint64_t, 4> lanes_{kPrime1 + kPrime2, kPrime2, 0, -kPrime1};
  std::array<std::uint8_t, kStripe> rest_{};  // the last size_ % kStripe bytes
  std::uint64_t size_ = 0;
};

std::uint64_t xxh64(std::span<const std::uint8_t> bytes);

}  // namespace draftd
