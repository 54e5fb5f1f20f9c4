// Parts of a source, as an explanation reads them: an index that grows or is
// frozen, or a segment. Held, so that they outlast the engine's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "draftd/explanation.h"
#include "draftd/index.h"
#include "draftd/segment.h"
#include "engine/head.h"
#include "support/turn_lock.h"

namespace draftd {

// A token and what stands before it.
struct Continued {
  std::span<const Token> context;  // at most kMaxMatch tokens
  Token token;
  std::span<const Token> both;  // the context and the token
};

// What a part knows of a token behind a context of a given length.
struct Followed {
  std::uint64_t count;
  std::uint64_t total;
  std::optional<DocumentPlace> last;
};

class TextPart {
 public:
  TextPart() = default;
  TextPart(const TextPart&) = delete;
  TextPart& operator=(const TextPart&) = delete;
  virtual ~TextPart() = default;

  virtual std::uint64_t tokens() const = 0;
  virtual std::uint64_t documents() const = 0;
  // Length of the longest suffix of the context behind which the token occurs.
  virtual std::uint32_t longest(const Continued& node) const = 0;
  // What follows the last `length` > 0 tokens of the context.
  virtual Followed followed(const Continued& node, std::uint32_t length) const = 0;
};

// Live text: a request's own, of one document without a label, a head's, or
// pieces of running requests, which are no documents.
class LivePart : public TextPart {
 public:
  explicit LivePart(const Index& own) : index_(&own) {}
  LivePart(std::shared_ptr<const Index> pieces, TurnLock& growing)
      : index_(pieces.get()), pieces_(std::move(pieces)), growing_(&growing) {}
  // `growing`: the lock under which the head grows; null if it doesn't any more.
  LivePart(std::shared_ptr<const Head> head, TurnLock* growing)
      : index_(&head->index()), head_(std::move(head)), growing_(growing) {}

  std::uint64_t tokens() const override;
  std::uint64_t documents() const override;
  std::uint32_t longest(const Continued& node) const override;
  Followed followed(const Continued& node, std::uint32_t length) const override;

 private:
  // Held while the index is read.
  std::unique_lock<TurnLock> guard() const {
    return growing_ == nullptr ? std::unique_lock<TurnLock>() : std::unique_lock(*growing_);
  }
  std::span<const Continuation> followers(State state) const;
  std::optional<DocumentPlace> place(std::size_t position) const;

  const Index* index_;
  std::shared_ptr<const Index> pieces_;
  std::shared_ptr<const Head> head_;
  TurnLock* growing_ = nullptr;
  mutable std::vector<Continuation> followers_;  // kept for its memory
};

class SealedPart : public TextPart {
 public:
  // It will be asked about nodes of these tokens only.
  SealedPart(std::shared_ptr<const Segment> segment, std::span<const DraftNode> tree);

  std::uint64_t tokens() const override { return segment_->tokens(); }
  std::uint64_t documents() const override { return segment_->documents(); }
  std::uint32_t longest(const Continued& node) const override;
  Followed followed(const Continued& node, std::uint32_t length) const override;

 private:
  DocumentPlace place(std::size_t slot) const;

  std::shared_ptr<const Segment> segment_;
  // The slot behind each document that ends with that token: there no token
  // follows, so the segment's contexts don't tell of it.
  std::unordered_map<Token, std::vector<std::size_t>> ends_;
};

}  // namespace draftd
