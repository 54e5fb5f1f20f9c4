// The queue of text that waits to be indexed, and who waits for it.
#pragma once

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

namespace draftd {

// Counts jobs in and out, in order, and wakes those who wait for one.
class IndexingProgress {
 public:
  IndexingProgress() = default;
  IndexingProgress(const IndexingProgress&) = delete;
  IndexingProgress& operator=(const IndexingProgress&) = delete;
  ~IndexingProgress() {
    for (const int fd : fds_) ::close(fd);
  }

  void job_added() {
    const std::scoped_lock guard(mutex_);
    ++added_;
    changed_.notify_all();
  }
  void jobs_done(std::uint64_t count) {
    const std::scoped_lock guard(mutex_);
    done_ += count;
    changed_.notify_all();
    const std::uint64_t one = 1;
    for (const int fd : fds_) {
      // Fails only when the counter is full; then it is readable anyway.
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
  }
  void stop() {
    const std::scoped_lock guard(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  std::uint64_t ticket() const {
    const std::scoped_lock guard(mutex_);
    return added_;
  }
  bool reached(std::uint64_t ticket) const {
    const std::scoped_lock guard(mutex_);
    return done_ >= ticket;
  }
  bool wait(std::uint64_t ticket, double seconds) const {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, std::chrono::duration<double>(seconds), [&] {
      return done_ >= ticket || stopped_;
    }) && done_ >= ticket;
  }
  // Blocks until there is a job to do; false when stopped.
  bool wait_for_job() const {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return added_ > done_ || stopped_; });
    return !stopped_;
  }
  int new_fd() {
    const std::scoped_lock guard(mutex_);
    fds_.push_back(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    return fds_.back();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
  bool stopped_ = false;
  std::vector<int> fds_;
};

}  // namespace draftd
