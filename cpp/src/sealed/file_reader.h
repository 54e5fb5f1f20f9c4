// The frame of a segment file, checked: the header and the bytes of each
// section. What the sections hold is checked by who knows what they mean.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sealed/format.h"

namespace draftd {

class FileReader {
 public:
  // Throws SegmentError, as does everything here, naming the file and the section.
  FileReader(const std::string& path, std::span<const std::uint8_t> file);

  const Header& header() const { return header_; }
  // The bytes of a section; each is asked for once, in the order of the format.
  std::span<const std::uint8_t> bytes(Section section);
  std::span<const std::uint8_t> bytes(Section section, std::uint64_t length);
  template <typename T>
  std::span<const T> array(Section section, std::uint64_t count) {
    // Sections are aligned in the file, and the file to a page.
    return {reinterpret_cast<const T*>(bytes(section, count * sizeof(T)).data()), count};
  }
  // After the last section.
  void end();

  // For a promise of the section that was asked for last.
  void require(bool holds, const char* otherwise) const;
  void require(bool holds, const char* otherwise, std::uint64_t where) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;

  const std::string& path_;
  std::span<const std::uint8_t> file_;
  const char* section_ = "header";
  Header header_;
  std::uint64_t next_ = sizeof(Header);  // where the next section has to start
};

}  // namespace draftd
