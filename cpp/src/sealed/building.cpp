// Collecting the documents of a segment; sealing.cpp writes it.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sealed/collected.h"
#include "sealed/format.h"

namespace draftd {

std::uint32_t* SegmentBuilder::Storage::extend(std::size_t tokens, std::string_view label, std::int64_t time) {
  if (tokens >= kMostSlots - stream.size()) throw std::length_error("segment: full at 2^31 - 2 slots");
  if (label.size() > std::numeric_limits<std::uint32_t>::max() - labels.size()) {
    throw std::length_error("segment: full at 4 GiB of labels");
  }
  std::uint32_t* first = stream.extend(tokens + 1);
  first[tokens] = kSeparatorSymbol;
  document_ends.push_back(static_cast<std::uint32_t>(stream.size() - 1));
  document_times.push_back(time);
  labels += label;
  label_ends.push_back(static_cast<std::uint32_t>(labels.size()));
  return first;
}

SegmentBuilder::SegmentBuilder(std::string fingerprint) : storage_(std::make_unique<Storage>(std::move(fingerprint))) {}
SegmentBuilder::~SegmentBuilder() = default;
SegmentBuilder::SegmentBuilder(SegmentBuilder&&) noexcept = default;
SegmentBuilder& SegmentBuilder::operator=(SegmentBuilder&&) noexcept = default;

void SegmentBuilder::add(std::span<const Token> tokens, std::string_view label, std::int64_t time) {
  if (tokens.empty()) return;
  const auto negative = std::find_if(tokens.begin(), tokens.end(), [](Token token) { return token < 0; });
  if (negative != tokens.end()) {
    throw std::invalid_argument("token id " + std::to_string(*negative) + " at position " +
                                std::to_string(negative - tokens.begin()) + " is negative");
  }
  Storage& s = *storage_;
  std::uint32_t* symbols = s.extend(tokens.size(), label, time);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    symbols[i] = static_cast<std::uint32_t>(tokens[i]) + 1;
    s.largest_symbol = std::max(s.largest_symbol, symbols[i]);
  }
}

void SegmentBuilder::add(const Segment& segment, std::size_t document) {
  Storage& s = *storage_;
  const SegmentDocument added = segment.document(document);
  std::uint32_t* symbols = s.extend(added.end - added.begin, added.label, added.time);
  for (std::size_t i = 0; i < added.end - added.begin; ++i) {
    symbols[i] = segment.layout().symbol(added.begin + i);
    s.largest_symbol = std::max(s.largest_symbol, symbols[i]);
  }
}

std::size_t SegmentBuilder::documents() const { return storage_->document_ends.size(); }
std::size_t SegmentBuilder::tokens() const { return storage_->stream.size() - documents() - 1; }

std::size_t SegmentBuilder::memory_size() const {
  const Storage& s = *storage_;
  return sizeof(SegmentBuilder) + sizeof(Storage) + s.stream.memory_size() +
         s.document_ends.capacity() * sizeof(s.document_ends[0]) +
         s.document_times.capacity() * sizeof(s.document_times[0]) + s.label_ends.capacity() * sizeof(s.label_ends[0]) +
         s.labels.capacity() + s.fingerprint.capacity();
}

}  // namespace draftd
