#include "automaton/edge_arena.h"

#include <bit>
#include <stdexcept>

namespace draftd {

std::uint32_t EdgeArena::capacity_after(std::uint32_t capacity) {
  switch (capacity) {
    case 0: return 2;
    case 2: return 3;
    case 3: return 4;
    case 4: return 6;
    case 6: return 8;
    default: return capacity * 2;
  }
}

std::uint32_t EdgeArena::size_class(std::uint32_t capacity) {
  switch (capacity) {
    case 2: return 0;
    case 3: return 1;
    case 4: return 2;
    case 6: return 3;
    default: return 1U + static_cast<std::uint32_t>(std::bit_width(capacity));  // 8 -> 5, 16 -> 6
  }
}

std::uint32_t EdgeArena::allocate(std::uint32_t capacity) {
  PodVector<std::uint32_t>& reusable = released_[size_class(capacity)];
  std::uint32_t offset = 0;
  if (!reusable.empty()) {
    offset = reusable.back();
    reusable.pop_back();
  } else {
    if (edges_.size() + capacity > UINT32_MAX) throw std::length_error("index: more than 2^32 edge slots");
    offset = static_cast<std::uint32_t>(edges_.size());
    edges_.extend(capacity);
  }
  if (capacity > kLargestList) {
    for (std::uint32_t i = 0; i < capacity; ++i) edges_[offset + i].token = kNoToken;
  }
  return offset;
}

void EdgeArena::release(std::uint32_t offset, std::uint32_t capacity) {
  PodVector<std::uint32_t>& reusable = released_[size_class(capacity)];
  released_bytes_ -= reusable.memory_size();
  reusable.push_back(offset);
  released_bytes_ += reusable.memory_size();
}

const Edge* EdgeArena::find(std::uint32_t offset, std::uint32_t capacity, std::uint32_t degree, Token token) const {
  const Edge* edges = &edges_[offset];
  if (capacity <= kLargestList) {
    for (std::uint32_t i = 0; i < degree; ++i) {
      if (edges[i].token == token) return &edges[i];
    }
    return nullptr;
  }
  for (std::uint32_t i = slot(token, capacity);; i = (i + 1) & (capacity - 1)) {
    if (edges[i].token == token) return &edges[i];
    if (edges[i].token == kNoToken) return nullptr;
  }
}

void EdgeArena::insert(std::uint32_t offset, std::uint32_t capacity, std::uint32_t degree, Edge edge) {
  Edge* edges = &edges_[offset];
  if (capacity <= kLargestList) {
    edges[degree] = edge;
    return;
  }
  std::uint32_t i = slot(edge.token, capacity);
  while (edges[i].token != kNoToken) i = (i + 1) & (capacity - 1);
  edges[i] = edge;
}

}  // namespace draftd
