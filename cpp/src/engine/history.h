// What requests of a namespace, or of a group in it, produced: documents of
// tokens, the oldest forgotten first.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "draftd/index.h"

namespace draftd {

// An automaton only grows. So the history is two of them: when the newer has
// its share of the limit, the older is dropped and a fresh one begun. Between
// a third of the limit and all of it is always remembered.
class History {
 public:
  explicit History(std::size_t limit) : limit_(limit) {}

  // Returns what was forgotten to make room, for the caller to free.
  std::optional<Index> append(std::span<const Token> tokens) {
    std::optional<Index> forgotten;
    if (newer_.memory_size() >= share()) {
      forgotten = std::exchange(older_, std::exchange(newer_, Index()));
    }
    newer_.append(tokens);
    return forgotten;
  }
  void end_document() { newer_.end_document(); }
  // Gives up the older half or, if that is gone, the rest.
  Index forget() { return std::exchange(older_.tokens() > 0 ? older_ : newer_, Index()); }

  const Index& newer() const { return newer_; }
  const Index& older() const { return older_; }
  // The half that knows more, for what is read off the text as a whole.
  const Index& larger() const { return newer_.tokens() < older_.tokens() ? older_ : newer_; }
  std::size_t tokens() const { return newer_.tokens() + older_.tokens(); }
  std::size_t memory_size() const { return newer_.memory_size() + older_.memory_size(); }

 private:
  // Storage grows by a quarter at a time: two indexes of this size, grown once
  // more each, are within the limit.
  std::size_t share() const { return limit_ / 5 * 2; }

  std::size_t limit_;
  Index newer_;
  Index older_;
};

}  // namespace draftd
