#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "draftd/ring.h"

namespace draftd {
namespace {

constexpr std::size_t kStatesBytes = 4096;  // a page, so that the lanes begin with one
constexpr std::size_t kMemoryBytes = kStatesBytes + 2 * kLaneBytes;
// Without these a peer could cut the file, and our next look at it would end this process.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(2 * sizeof(RingState) <= kStatesBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "a lock would be one process's own");

void require(bool done) {
  if (!done) throw std::system_error(errno, std::generic_category(), "shared memory");
}

}  // namespace

int RingMemory::create() {
  const int file = ::memfd_create("draftd-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(file >= 0);
  if (::ftruncate(file, kMemoryBytes) != 0 || ::fcntl(file, F_ADD_SEALS, kSeals) != 0) {
    const int reason = errno;
    ::close(file);
    errno = reason;
    require(false);
  }
  return file;
}

RingMemory::RingMemory(int file) {
  struct stat status{};
  require(::fstat(file, &status) == 0);
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || std::cmp_not_equal(status.st_size, kMemoryBytes)) {
    throw RingBroken("the memory offered is no ring");
  }
  void* mapped = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(mapped != MAP_FAILED);
  states_ = static_cast<RingState*>(mapped);  // a new file is zeros, which are a fresh state
  lanes_ = static_cast<std::uint8_t*>(mapped) + kStatesBytes;
}

RingMemory::~RingMemory() { ::munmap(states_, kMemoryBytes); }

}  // namespace draftd
