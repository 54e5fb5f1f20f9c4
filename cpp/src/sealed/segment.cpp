#include "draftd/segment.h"

#include <stdexcept>
#include <utility>

#include "sealed/storage.h"

namespace draftd {

Segment::Segment(std::unique_ptr<const Storage> storage) : storage_(std::move(storage)) {}
Segment::~Segment() = default;

std::size_t Segment::tokens() const { return storage_->layout.entry_count; }
std::size_t Segment::documents() const { return storage_->document_ends.size(); }
std::size_t Segment::distinct_tokens() const { return storage_->distinct_tokens; }
std::span<const FrequentToken> Segment::frequent_tokens() const { return storage_->frequent_tokens; }
std::string_view Segment::fingerprint() const { return storage_->fingerprint; }
const std::string& Segment::path() const { return storage_->path; }
const Segment::Layout& Segment::layout() const { return storage_->layout; }

SegmentDocument Segment::document(std::size_t i) const {
  const Storage& s = *storage_;
  if (i >= s.document_ends.size()) throw std::out_of_range(s.path + ": no document " + std::to_string(i));
  const std::size_t separator_before = i == 0 ? 0 : s.document_ends[i - 1];
  const std::size_t label = i == 0 ? 0 : s.label_ends[i - 1];
  return {separator_before + 1, s.document_ends[i], s.document_times[i],
          s.labels.substr(label, s.label_ends[i] - label)};
}

void Segment::read(std::uint64_t slot, std::span<Token> into) const {
  const Storage& s = *storage_;
  if (slot > s.layout.slots || into.size() > s.layout.slots - slot) {
    throw std::out_of_range(s.path + ": no " + std::to_string(into.size()) + " tokens from slot " +
                            std::to_string(slot));
  }
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<Token>(s.layout.symbol(slot + i) - 1);
}

std::size_t Segment::memory_size() const {
  return sizeof(Segment) + sizeof(Storage) + storage_->path.capacity() + storage_->file.bytes().size();
}

}  // namespace draftd
