// A sealed segment: documents that don't change any more, in one read-only
// file that is mapped into memory. Its contexts are sorted by the text read
// backwards, so that everything that followed a context lies side by side.
// docs/segment-format.md describes the file byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "draftd/index.h"
#include "draftd/types.h"

namespace draftd {

// A file that can't be used. The message names the file, the section and what is wrong there.
struct SegmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SegmentDocument {
  std::uint64_t begin;  // slots [begin, end) of the stream; a separator stands before and behind
  std::uint64_t end;
  std::int64_t time;       // unix seconds
  std::string_view label;  // lives as long as the segment
};

// Never changes, so any number of threads may read it.
class Segment {
 public:
  // Maps the file and verifies every checksum, count and range in it. Throws
  // SegmentError for a file that can't be used, std::system_error for one that
  // can't be opened. The file must not be written to or cut while it is mapped;
  // unlinking it is fine.
  static std::shared_ptr<const Segment> open(const std::string& path);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::size_t tokens() const;
  std::size_t documents() const;
  std::size_t distinct_tokens() const;
  // The most frequent tokens, most frequent first, ties to the more recent.
  std::span<const FrequentToken> frequent_tokens() const;
  SegmentDocument document(std::size_t i) const;
  // Decodes the tokens from `slot` on; they must lie in one document.
  void read(std::uint64_t slot, std::span<Token> into) const;
  // Of the tokenizer the ids are from; empty: not stated.
  std::string_view fingerprint() const;
  // Bytes that are mapped, and the object.
  std::size_t memory_size() const;
  const std::string& path() const;

  // What a search reads; cpp/src/sealed/layout.h.
  struct Layout;
  const Layout& layout() const;

 private:
  struct Storage;
  explicit Segment(std::unique_ptr<const Storage> storage);
  std::unique_ptr<const Storage> storage_;
};

// Collects documents and writes them as one segment.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(std::string fingerprint);
  ~SegmentBuilder();
  SegmentBuilder(SegmentBuilder&&) noexcept;
  SegmentBuilder& operator=(SegmentBuilder&&) noexcept;

  // Adds one document; one without tokens is skipped. Throws
  // std::invalid_argument for a negative id and std::length_error past what a
  // segment holds: 2^31 - 3 tokens and documents together, 4 GiB of labels.
  void add(std::span<const Token> tokens, std::string_view label, std::int64_t time);
  // Adds a document of another segment.
  void add(const Segment& segment, std::size_t document);

  std::size_t tokens() const;
  std::size_t documents() const;
  std::size_t memory_size() const;

  // Sorts and writes, and has the bytes on disk when it returns. The builder is
  // empty then. Creates the file: std::system_error when it exists, or when the
  // disk is full; then nothing is left of it. std::invalid_argument when there
  // is no document to write.
  void write(const std::string& path);

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
