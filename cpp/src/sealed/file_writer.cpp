#include "sealed/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace draftd {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

}  // namespace

FileWriter::FileWriter(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), path), buffer_(kBuffer) {}

FileWriter::~FileWriter() {
  if (!finished_) ::unlink(path_.c_str());
}

void FileWriter::begin(Section section) {
  place_ = &places_[static_cast<std::size_t>(section)];
  place_->offset = size_;
  checksum_ = Xxh64();
}

void FileWriter::write_bytes(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (used_ == buffer_.size()) flush();
    const std::size_t taken = std::min(buffer_.size() - used_, bytes.size());
    std::copy_n(bytes.begin(), taken, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += taken;
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
  const std::uint64_t end = size_ + used_;
  place_->length = end - place_->offset;
  write_bytes(std::span(kZeros).first(aligned(end) - end));
  flush();
  place_->checksum = checksum_.digest();
}

void FileWriter::flush() {
  const std::span<const std::uint8_t> bytes = std::span(buffer_).first(used_);
  checksum_.update(bytes);
  write_at(size_, bytes);
  size_ += used_;
  used_ = 0;
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
  header.file_size = size_;
  header.checksum = checksum_of(header);
  write_at(0, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  if (::fsync(file_.number()) != 0) throw std::system_error(errno, std::generic_category(), path_);
  finished_ = true;
}

}  // namespace draftd
