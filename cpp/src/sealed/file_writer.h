// Writes a segment file front to back, section by section, with checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "sealed/format.h"
#include "support/file_descriptor.h"
#include "support/xxh64.h"

namespace draftd {

class FileWriter {
 public:
  // Creates the file, which must not exist. Here and below std::system_error names it.
  explicit FileWriter(const std::string& path);
  // Removes the file unless it was finished.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Sections are written in the order of the format: at once, or as packed numbers between begin and end_packed.
  template <typename T>
  void write(Section section, std::span<const T> values) {
    begin(section);
    write_bytes({reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()});
    end();
  }
  void begin(Section section);
  void pack(std::uint32_t number, unsigned width) {
    bits_ |= std::uint64_t{number} << bit_count_;
    bit_count_ += width;
    std::memcpy(&buffer_[used_], &bits_, sizeof bits_);
    used_ += bit_count_ / 8;  // the last byte goes on with the next number
    bits_ >>= bit_count_ / 8 * 8;
    bit_count_ %= 8;
    if (used_ >= kPiece) write_piece();
  }
  void end_packed();

  // Writes the header, in which the places of the sections are filled in, and
  // has all of it on disk when it returns.
  void finish(Header header);

 private:
  // A large page. What is written in such pieces the system may keep in large
  // pages, and map so: random reads are then a fifth faster.
  static constexpr std::size_t kPiece = std::size_t{1} << 21;

  void end();
  void write_bytes(std::span<const std::uint8_t> bytes);
  void write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  void write_piece();
  void sum();
  std::uint64_t size() const { return written_ + used_; }

  std::string path_;
  FileDescriptor file_;
  bool finished_ = false;
  std::uint64_t written_ = 0;         // bytes of the file, whole pieces
  std::vector<std::uint8_t> buffer_;  // what follows them; a number may reach over the end of the piece
  std::size_t used_ = sizeof(Header);
  std::size_t summed_ = sizeof(Header);  // bytes of the buffer that the checksum has taken in
  std::uint64_t bits_ = 0;               // of a byte that isn't complete yet
  unsigned bit_count_ = 0;
  std::array<SectionPlace, kSections> places_{};
  SectionPlace* place_ = nullptr;  // of the open section
  Xxh64 checksum_;
};

}  // namespace draftd
