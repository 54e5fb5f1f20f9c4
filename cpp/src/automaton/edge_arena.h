// Blocks of edges of the automaton's branching states. Blocks of up to
// kLargestList edges are lists, searched front to back; larger ones are hash
// tables with open addressing. A block that is outgrown is reused by the next
// state that needs one of its size.
#pragma once

#include <array>
#include <cstdint>

#include "draftd/types.h"
#include "support/pod_vector.h"

namespace draftd {

struct Edge {
  Token token;           // kNoToken marks a free slot of a hash table
  std::uint32_t target;  // state
};

inline constexpr Token kNoToken = -1;

class EdgeArena {
 public:
  static constexpr std::uint32_t kLargestList = 8;

  // The next larger capacity: 2, 3, 4, 6, 8, then powers of two.
  static std::uint32_t capacity_after(std::uint32_t capacity);
  // How many edges a block of that capacity may hold before it must grow.
  static std::uint32_t limit(std::uint32_t capacity) {
    return capacity <= kLargestList ? capacity : capacity - capacity / 8;
  }

  // Returns the offset of a block; the slots of a hash table are free.
  std::uint32_t allocate(std::uint32_t capacity);
  void release(std::uint32_t offset, std::uint32_t capacity);

  Edge* block(std::uint32_t offset) { return &edges_[offset]; }
  const Edge* block(std::uint32_t offset) const { return &edges_[offset]; }

  // The slot of `token`, or nullptr. `degree` edges are in the block.
  const Edge* find(std::uint32_t offset, std::uint32_t capacity, std::uint32_t degree, Token token) const;
  // Adds an edge that is not there yet to a block with room for it.
  void insert(std::uint32_t offset, std::uint32_t capacity, std::uint32_t degree, Edge edge);

  std::size_t memory_size() const { return edges_.memory_size() + released_bytes_; }

 private:
  static std::uint32_t slot(Token token, std::uint32_t capacity) {
    // Fibonacci hashing; the high bits are the well mixed ones.
    const std::uint32_t mixed = static_cast<std::uint32_t>(token) * 2654435769U;
    return static_cast<std::uint32_t>((std::uint64_t{mixed} * capacity) >> 32);
  }
  static std::uint32_t size_class(std::uint32_t capacity);

  PodVector<Edge> edges_;
  std::array<PodVector<std::uint32_t>, 36> released_;  // offsets by size class
  std::size_t released_bytes_ = 0;                     // of their memory
};

}  // namespace draftd
