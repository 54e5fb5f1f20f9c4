// Threads that lend a hand: the parts of one piece of work are done by its caller
// and by whoever of them wakes in time. The caller never waits for one that has not
// begun, so a helper that is late, or busy for another caller, holds nobody up.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace draftd {

class Crew {
 public:
  // Throws std::system_error when the system has no thread left.
  explicit Crew(unsigned helpers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  unsigned helpers() const { return static_cast<unsigned>(threads_.size()); }
  // Calls `work` once with each number below `parts`, several at the same time, and returns when all calls have.
  // While the crew works for another caller, this thread makes them all. Throws what a call threw.
  template <typename Work>
  void run(std::uint32_t parts, const Work& work) {
    share({[](const void* of, std::uint32_t part) { (*static_cast<const Work*>(of))(part); }, &work}, parts);
  }

 private:
  // A std::function of which nothing is allocated.
  struct Task {
    void (*call)(const void* work, std::uint32_t part);
    const void* work;
  };

  void share(const Task& task, std::uint32_t parts);
  void do_part(std::uint32_t part);
  // A part that nobody has begun, if there is one.
  std::optional<std::uint32_t> begin_part();
  void help();
  void end();

  static constexpr std::uint64_t kRun = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kParts = kRun - 1;

  std::mutex caller_;
  // In the lower half how many parts nobody has begun, in the upper the number of their run.
  std::atomic<std::uint64_t> open_{0};
  std::atomic<std::uint32_t> helped_{0};  // parts of this run that helpers have done
  Task task_{};                           // whoever has begun a part may read it: until that is done, the run goes on
  std::mutex failure_guard_;
  std::exception_ptr failure_;  // the last of this run
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace draftd
