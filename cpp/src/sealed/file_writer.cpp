#include "sealed/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace draftd {

FileWriter::FileWriter(const std::string& path)
    : path_(path),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), path),
      buffer_(kPiece + sizeof bits_) {}

FileWriter::~FileWriter() {
  if (!finished_) ::unlink(path_.c_str());
}

void FileWriter::begin(Section section) {
  place_ = &places_[static_cast<std::size_t>(section)];
  place_->offset = size();
  checksum_ = Xxh64();
}

void FileWriter::write_bytes(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t taken = std::min(kPiece - used_, bytes.size());
    std::copy_n(bytes.begin(), taken, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += taken;
    if (used_ == kPiece) write_piece();
    bytes = bytes.subspan(taken);
  }
}

void FileWriter::end_packed() {
  constexpr std::array<std::uint8_t, sizeof bits_> kRoom{};
  if (bit_count_ != 0) pack(0, 8 - bit_count_);
  write_bytes(kRoom);
  end();
}

void FileWriter::end() {
  constexpr std::array<std::uint8_t, kAlignment> kZeros{};
  place_->length = size() - place_->offset;
  write_bytes(std::span(kZeros).first(aligned(size()) - size()));
  sum();
  place_->checksum = checksum_.digest();
}

void FileWriter::sum() {
  checksum_.update(std::span(buffer_).subspan(summed_, used_ - summed_));
  summed_ = used_;
}

void FileWriter::write_piece() {
  sum();
  write_at(written_, std::span(buffer_).first(kPiece));
  written_ += kPiece;
  used_ -= kPiece;
  summed_ = used_;
  std::copy_n(buffer_.begin() + kPiece, used_, buffer_.begin());
}

void FileWriter::write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw std::system_error(errno, std::generic_category(), path_);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void FileWriter::finish(Header header) {
  header.places = places_;
  header.file_size = size();
  header.checksum = checksum_of(header);
  write_at(written_, std::span(buffer_).first(used_));
  write_at(0, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  if (::fsync(file_.number()) != 0) throw std::system_error(errno, std::generic_category(), path_);
  finished_ = true;
}

}  // namespace draftd
