#include "support/large_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace draftd {

LargePages::LargePages(std::size_t bytes) : size_(std::max<std::size_t>(bytes, 1)) {
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = mapped;
  ::madvise(data_, size_, MADV_HUGEPAGE);  // a wish: without large pages it works as well, only slower
}

LargePages::~LargePages() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace draftd
