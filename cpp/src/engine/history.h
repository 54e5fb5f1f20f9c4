// What requests of a namespace, or of a group in it, produced: documents of
// tokens, the oldest forgotten first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "draftd/histories.h"
#include "draftd/index.h"
#include "draftd/segments.h"
#include "engine/flight.h"
#include "engine/head.h"

namespace draftd {

// From old to new: sealed segments, an older head, the newer one that grows, and
// the flight, of what is not finished yet and counts for no limit of a history. An automaton only grows, so a head is
// given up as a whole: either the caller takes it to be sealed (freeze), and publishes the segment in its place; or,
// when the newer has its share of the limit, the older is dropped. Without any sealing between a third of the limit and
// all of it is remembered.
//
// A document under way when its head is replaced is cut in two: an older head
// holds whole documents only and never changes, so it may be read without the lock.
class History {
 public:
  static constexpr std::uint64_t kFirstGeneration = 1;

  History(std::size_t limit, std::uint64_t generation);

  // Goes on with the document under way, or begins one. Returns how many tokens
  // were forgotten to make room.
  std::size_t append(std::span<const Token> tokens, std::string_view label, std::int64_t time, Freed& freed);
  void end_document() { newer_->end_document(); }

  // The head that is to be sealed next: an older one that nobody took yet, or
  // the newer one, in whose place a new one is begun. None while the last one
  // taken is still here, and when there is no text.
  std::shared_ptr<const Head> freeze();
  // Replaces the segments, and with `drop_frozen` drops the head that freeze()
  // gave, if a limit did not do so before. Returns how many tokens were
  // forgotten because the segments are over the limit.
  std::size_t publish(SegmentSet segments, bool drop_frozen, Freed& freed);
  // Gives up the flight and a head: the older one, or else the newer. Returns how
  // many tokens of heads that were.
  std::size_t forget(Freed& freed);

  // Copies the next tokens of whole documents that were not drained before, up
  // to `most` and of one head, which `into` then names; the last document may
  // lack its end. False when there are none.
  bool drain(std::size_t most, HistoryDocuments& into);

  // Whether all that the newer head holds is whole documents that were drained;
  // only behind such can go what was drained in an earlier life.
  bool can_restore() const { return !newer_->under_way() && newer_drained_.documents == newer_->documents(); }
  // Drained documents of that generation follow; the head's never falls.
  void raise_generation(std::uint64_t generation) {
    newer_->set_generation(std::max(generation, newer_->generation()));
  }
  // Adds such a document. Returns how many tokens were forgotten to make room.
  std::size_t restore(std::span<const Token> tokens, std::string_view label, std::int64_t time, Freed& freed);

  const Index& newer() const { return newer_->index(); }
  const Index& older() const { return older_->index(); }
  // For who reads on without the lock; the newer one grows under it.
  std::shared_ptr<const Head> newer_head() const { return newer_; }
  std::shared_ptr<const Head> older_head() const { return older_; }
  const Flight& flight() const { return flight_; }
  Flight& flight() { return flight_; }
  const std::shared_ptr<const SegmentSet>& segments() const { return segments_; }
  std::uint64_t generation() const { return newer_->generation(); }
  std::optional<std::int64_t> oldest() const { return older_->oldest() ? older_->oldest() : newer_->oldest(); }
  std::size_t head_memory_size() const { return newer_->memory_size(); }
  std::size_t tokens() const;
  std::size_t memory_size() const;
  // Of heads and flight. Segments are on the disk, and their pages the system's.
  std::size_t live_tokens() const { return head_tokens() + flight_.index().tokens(); }
  std::size_t live_memory_size() const { return head_memory_sizes() + flight_.memory_size(); }

 private:
  // Storage grows by a sixteenth at a time, and some elements: two heads of this
  // size, grown once more each, are within the limit.
  std::size_t share() const { return limit_ / 12 * 5; }
  // How far a head is drained.
  struct Drained {
    std::size_t documents = 0;
    std::size_t tokens = 0;  // of the next
  };

  std::size_t head_tokens() const { return newer().tokens() + older().tokens(); }
  std::size_t head_memory_sizes() const { return newer_->memory_size() + older_->memory_size(); }
  std::size_t replace_head(Freed& freed);
  void drop_older(Freed& freed);
  std::size_t keep_limit(Freed& freed);
  std::size_t drop_oldest_segment(Freed& freed);

  std::size_t limit_;
  std::shared_ptr<const SegmentSet> segments_;
  std::shared_ptr<Head> newer_;
  std::shared_ptr<const Head> older_;
  Flight flight_;
  bool sealing_ = false;  // freeze() gave the older head
  Drained newer_drained_;
  Drained older_drained_;
};

}  // namespace draftd
