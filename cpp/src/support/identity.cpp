#include "support/identity.h"

#include <atomic>

namespace draftd {

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> identities{0};
  return identities.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace draftd
