#include "sealed/file_reader.h"

#include <bit>
#include <cstring>

#include "draftd/segment.h"

namespace draftd {

FileReader::FileReader(const std::string& path, std::span<const std::uint8_t> file) : path_(path), file_(file) {
  const auto expect = [&](const char* what, std::uint64_t found, std::uint64_t least, std::uint64_t greatest) {
    if (found >= least && found <= greatest) return;
    fail(std::to_string(found) + " " + what + ", expected " + std::to_string(least) +
         (least == greatest ? "" : " to " + std::to_string(greatest)));
  };
  require(file.size() >= sizeof header_, "the file is shorter than one");
  std::memcpy(&header_, file.data(), sizeof header_);
  require(header_.magic == kMagic, "this is not a segment file");
  require(header_.version == kFormatVersion, "this draftd can't read format version", header_.version);
  require(header_.checksum == checksum_of(header_), "wrong checksum");
  expect("bytes", file.size(), header_.file_size, header_.file_size);
  expect("sections", header_.sections, kSections, kSections);
  expect("slots", header_.slots, 3, kMostSlots);
  expect("documents", header_.documents, 1, (header_.slots - 1) / 2);
  expect("distinct tokens", header_.distinct_tokens, 1, header_.tokens());
  expect("bits for a symbol", header_.width, 1, 32);
  const auto position_width = static_cast<std::uint64_t>(std::bit_width(header_.slots - 1));
  expect("bits for an entry", header_.position_width, position_width, position_width);
}

std::span<const std::uint8_t> FileReader::bytes(Section section) {
  section_ = kSectionNames[static_cast<std::size_t>(section)];
  const SectionPlace& place = header_.place(section);
  require(place.offset == next_, "starts at a wrong place", place.offset);
  require(place.offset <= file_.size() && place.length <= file_.size() - place.offset && place.next() <= file_.size(),
          "reaches over the end of the file");
  next_ = place.next();
  require(place.checksum == xxh64(file_.subspan(place.offset, next_ - place.offset)), "wrong checksum");
  return file_.subspan(place.offset, place.length);
}

std::span<const std::uint8_t> FileReader::bytes(Section section, std::uint64_t length) {
  const std::span<const std::uint8_t> found = bytes(section);
  if (found.size() != length) {
    fail(std::to_string(found.size()) + " bytes, expected " + std::to_string(length));
  }
  return found;
}

void FileReader::end() {
  section_ = "end";
  require(next_ == file_.size(), "there are bytes behind the last section, from", next_);
}

void FileReader::require(bool holds, const char* otherwise) const {
  if (!holds) fail(otherwise);
}

void FileReader::require(bool holds, const char* otherwise, std::uint64_t where) const {
  if (!holds) fail(std::string(otherwise) + " " + std::to_string(where));
}

void FileReader::fail(const std::string& what) const { throw SegmentError(path_ + ": " + section_ + ": " + what); }

}  // namespace draftd
