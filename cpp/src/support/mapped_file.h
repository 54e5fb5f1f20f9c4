// A file's bytes as read-only memory. They are the system's to drop and to
// read again, and go back to it with the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace draftd {

class MappedFile {
 public:
  // Throws std::system_error that names the file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace draftd
