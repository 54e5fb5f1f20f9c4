#include "support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "support/file_descriptor.h"

namespace draftd {

MappedFile::MappedFile(const std::string& path) {
  const auto require = [&](bool done) {
    if (!done) throw std::system_error(errno, std::generic_category(), path);
  };
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  struct stat status{};
  require(::fstat(file.number(), &status) == 0);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // nothing can be mapped, and nothing is there to be read
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number(), 0);
  require(mapped != MAP_FAILED);
  data_ = static_cast<const std::uint8_t*>(mapped);
  ::madvise(mapped, size_, MADV_HUGEPAGE);  // what is read from the disk comes in large pages, where the system can
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace draftd
