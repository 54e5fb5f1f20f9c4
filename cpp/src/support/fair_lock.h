// A lock that is granted in the order it was asked for. Steps and the indexing
// thread share one; both hold it for a bounded time, so neither can starve the
// other, which a std::mutex allows.
#pragma once

#include <atomic>
#include <cstdint>

namespace draftd {

class FairLock {
 public:
  void lock() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t serving = serving_.load(std::memory_order_acquire); serving != ticket;
         serving = serving_.load(std::memory_order_acquire)) {
      serving_.wait(serving, std::memory_order_acquire);
    }
  }
  void unlock() {
    serving_.fetch_add(1, std::memory_order_release);
    serving_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
};

}  // namespace draftd
