// Indexes of requests that have ended, for those that go on from their text:
// the next turn of a conversation, the next call of an agent. Only what begins
// with exactly that text, in the same namespace, gets one; so a request learns
// nothing from it that it did not bring itself. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "draftd/session.h"
#include "draftd/types.h"
#include "engine/flight.h"

namespace draftd {

class KeptIndexes {
 public:
  // Bounds what a search looks at: some 20 us.
  static constexpr std::size_t kMost = 1024;

  explicit KeptIndexes(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Keeps the index unless it is of no text. To keep the limits the namespace that takes most loses its oldest, so
  // none can push out what another keeps that takes less.
  void keep(std::uint32_t name_space, OwnIndex index, double now, Freed& freed);
  // Takes out the one of the longest text that `text` begins with; of equal ones the newest.
  std::optional<OwnIndex> take(std::uint32_t name_space, std::span<const Token> text);
  // Drops what was kept before `oldest`.
  void expire(double oldest, Freed& freed);
  // Drops all of a namespace.
  void forget(std::uint32_t name_space, Freed& freed);
  // Whether there was one.
  bool drop_oldest(Freed& freed);

  std::size_t tokens() const {
    const std::scoped_lock guard(mutex_);
    return tokens_;
  }
  std::size_t memory_size() const {
    const std::scoped_lock guard(mutex_);
    return bytes_;
  }

 private:
  struct Kept {
    std::uint32_t name_space;
    std::uint64_t ending;  // hash of the last tokens of the text
    std::size_t length;    // of the text
    std::size_t bytes;
    double since;
    std::shared_ptr<OwnIndex> index;
  };

  // What a namespace takes.
  struct Share {
    std::size_t indexes = 0;
    std::size_t bytes = 0;
  };

  template <typename Drops>
  void drop(const Drops& drops, Freed& freed);
  void take_off(const Kept& gone);
  void pop(std::vector<Kept>::iterator gone, Freed& freed);
  std::vector<Kept>::iterator oldest_of_largest(std::size_t Share::* size);

  mutable std::mutex mutex_;
  std::size_t most_bytes_;
  std::vector<Kept> kept_;                           // the oldest first
  std::unordered_map<std::uint32_t, Share> shares_;  // by namespace
  std::size_t tokens_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace draftd
