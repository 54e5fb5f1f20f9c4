#include "engine/text_parts.h"

#include <algorithm>
#include <ranges>
#include <string>

#include "sealed/string_range.h"

namespace draftd {

// --- live ---

std::span<const Continuation> LivePart::followers(State state) const {
  followers_.resize(index_->degree(state));
  index_->continuations(state, followers_);
  return followers_;
}

std::uint64_t LivePart::tokens() const {
  const auto held = guard();
  return index_->tokens();
}

std::uint64_t LivePart::documents() const {
  const auto held = guard();
  return pieces_ == nullptr ? index_->documents() : 0;
}

std::uint32_t LivePart::longest(const Continued& node) const {
  const auto held = guard();
  Cursor cursor = index_->match(node.context);
  for (; cursor.length > 0; cursor = index_->shorter(cursor)) {
    const auto known = followers(cursor.state);
    if (std::ranges::find(known, node.token, &Continuation::token) != known.end()) break;
  }
  return cursor.length;
}

Followed LivePart::followed(const Continued& node, std::uint32_t length) const {
  const auto held = guard();
  Followed found{0, 0, std::nullopt};
  Cursor cursor = index_->match(node.context);
  if (cursor.length < length) return found;
  // A state stands for all contexts longer than its next shorter one.
  for (Cursor next = index_->shorter(cursor); next.length >= length; next = index_->shorter(cursor)) cursor = next;
  for (const Continuation& follower : followers(cursor.state)) {
    found.total += follower.count;
    if (follower.token != node.token) continue;
    found.count = follower.count;
    found.last = place(follower.last);
  }
  return found;
}

std::optional<DocumentPlace> LivePart::place(std::size_t position) const {
  if (pieces_ != nullptr) return std::nullopt;
  if (head_ != nullptr) return head_->place(position);
  return DocumentPlace{"", position - 1, std::nullopt};  // a separator stands before the first token
}

// --- sealed ---

SealedPart::SealedPart(std::shared_ptr<const Segment> segment, std::span<const DraftNode> tree)
    : segment_(std::move(segment)) {
  for (const DraftNode& node : tree) ends_[node.token];
  for (std::size_t document = 0; document < segment_->documents(); ++document) {
    const std::size_t end = segment_->document(document).end;
    const auto ending = ends_.find(static_cast<Token>(segment_->layout().symbol(end - 1) - 1));
    if (ending != ends_.end()) ending->second.push_back(end);
  }
}

std::uint32_t SealedPart::longest(const Continued& node) const {
  std::uint32_t longest = longest_followed(segment_->layout(), node.both);
  for (const std::size_t end : ends_.at(node.token)) {
    longest = std::max(longest, agreement(segment_->layout(), end, node.both));
  }
  return longest == 0 ? 0 : longest - 1;  // without the token itself
}

Followed SealedPart::followed(const Continued& node, std::uint32_t length) const {
  const Segment::Layout& layout = segment_->layout();
  const std::span<const Token> string = node.both.last(length + 1);
  const EntryRange behind = slots_behind(layout, string);
  Followed found{behind.size(), slots_behind(layout, node.context.last(length)).size(), std::nullopt};
  std::size_t last = 0;
  for (std::uint32_t entry = behind.first; entry < behind.last; ++entry) {
    last = std::max<std::size_t>(last, layout.entry(entry));
  }
  for (const std::size_t end : ends_.at(node.token)) {
    if (agreement(layout, end, string) < string.size()) continue;
    ++found.count;
    last = std::max(last, end);
  }
  if (found.count > 0) found.last = place(last - 1);
  return found;
}

DocumentPlace SealedPart::place(std::size_t slot) const {
  const auto documents = std::views::iota(std::size_t{0}, segment_->documents());
  const std::size_t number = *std::ranges::partition_point(
      documents, [&](std::size_t document) { return segment_->document(document).end <= slot; });
  const SegmentDocument document = segment_->document(number);
  return {std::string(document.label), slot - document.begin, document.time};
}

}  // namespace draftd
