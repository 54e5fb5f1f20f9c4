#include "engine/history.h"

#include <algorithm>
#include <utility>

namespace draftd {
namespace {

// What it costs to copy a document, in tokens copied.
constexpr std::size_t kTokensPerDocument = 64;

}  // namespace

History::History(std::size_t limit, std::uint64_t generation)
    : limit_(limit),
      segments_(std::make_shared<const SegmentSet>()),
      newer_(std::make_shared<Head>(generation)),
      older_(std::make_shared<const Head>(generation)) {}

std::size_t History::append(std::span<const Token> tokens, std::string_view label, std::int64_t time, Freed& freed) {
  const std::size_t forgotten = newer_->memory_size() < share() ? 0 : replace_head(freed);
  newer_->append(tokens, label, time);
  return forgotten + keep_limit(freed);
}

std::shared_ptr<const Head> History::freeze() {
  if (sealing_) return nullptr;
  if (older().tokens() == 0) {
    if (newer().tokens() == 0) return nullptr;
    Freed empty;
    replace_head(empty);
  }
  sealing_ = true;
  return older_;
}

std::size_t History::publish(SegmentSet segments, bool drop_frozen, Freed& freed) {
  freed.push_back(std::exchange(segments_, std::make_shared<const SegmentSet>(std::move(segments))));
  if (drop_frozen && sealing_) drop_older(freed);
  return keep_limit(freed);
}

std::size_t History::forget(Freed& freed) {
  flight_.empty(freed);
  const std::size_t before = tokens();
  if (before == 0) return 0;
  if (older().tokens() == 0) replace_head(freed);
  drop_older(freed);
  return before - tokens();
}

bool History::drain(std::size_t most, HistoryDocuments& into) {
  const bool from_older = older_drained_.documents < older_->documents();
  const Head& head = from_older ? *older_ : *newer_;
  Drained& drained = from_older ? older_drained_ : newer_drained_;
  into.generation = head.generation();
  const bool any = drained.documents < head.documents();
  while (most > 0 && drained.documents < head.documents()) {
    const std::size_t ends = into.document_end.size();
    const std::size_t copied = head.copy(drained.documents, drained.tokens, most, into);
    const bool whole = into.document_end.size() > ends;
    drained = whole ? Drained{drained.documents + 1, 0} : Drained{drained.documents, drained.tokens + copied};
    most -= std::min(most, copied + kTokensPerDocument);
  }
  return any;
}

std::size_t History::restore(std::span<const Token> tokens, std::string_view label, std::int64_t time, Freed& freed) {
  // Should this begin a new head, documents of the generation lie in both: it
  // is sealed with the newer one, so the older passes for the one before.
  const std::uint64_t generation = newer_->generation();
  newer_->set_generation(generation - 1);
  const std::size_t forgotten = append(tokens, label, time, freed);
  newer_->set_generation(generation);
  end_document();
  newer_drained_ = {newer_->documents(), 0};
  return forgotten;
}

std::size_t History::tokens() const {
  std::size_t sum = head_tokens();
  for (const auto& segment : *segments_) sum += segment->tokens();
  return sum;
}

std::size_t History::memory_size() const {
  std::size_t sum = head_memory_sizes();
  for (const auto& segment : *segments_) sum += segment->memory_size();
  return sum;
}

// The newer head becomes the older one. Returns how many tokens that one held.
std::size_t History::replace_head(Freed& freed) {
  const std::size_t forgotten = older().tokens();
  drop_older(freed);
  newer_->end_document();
  older_ = std::exchange(newer_, std::make_shared<Head>(generation() + 1));
  older_drained_ = std::exchange(newer_drained_, {});
  return forgotten;
}

void History::drop_older(Freed& freed) {
  freed.push_back(std::exchange(older_, std::make_shared<const Head>(generation())));
  older_drained_ = {};
  sealing_ = false;
}

std::size_t History::keep_limit(Freed& freed) {
  std::size_t forgotten = 0;
  while (memory_size() > limit_ && !segments_->empty()) forgotten += drop_oldest_segment(freed);
  if (memory_size() > limit_) {
    forgotten += older().tokens();
    drop_older(freed);
  }
  return forgotten;
}

std::size_t History::drop_oldest_segment(Freed& freed) {
  const std::size_t forgotten = segments_->front()->tokens();
  const auto kept = std::make_shared<const SegmentSet>(segments_->begin() + 1, segments_->end());
  freed.push_back(std::exchange(segments_, kept));
  return forgotten;
}

}  // namespace draftd
