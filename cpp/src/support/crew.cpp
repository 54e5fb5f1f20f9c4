#include "support/crew.h"

#include <utility>

namespace draftd {

Crew::Crew(unsigned helpers) {
  threads_.reserve(helpers);
  try {
    for (unsigned i = 0; i < helpers; ++i) threads_.emplace_back([this] { help(); });
  } catch (...) {
    end();
    throw;
  }
}

Crew::~Crew() { end(); }

void Crew::end() {
  ends_.store(true);
  open_.fetch_add(kRun);  // whoever is about to wait for what it was does not
  open_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::share(const Task& task, std::uint32_t parts) {
  const std::unique_lock only_caller(caller_, std::try_to_lock);
  if (threads_.empty() || parts < 2 || !only_caller) {
    for (std::uint32_t part = 0; part < parts; ++part) task.call(task.work, part);
    return;
  }
  task_ = task;
  helped_.store(0, std::memory_order_relaxed);
  const std::uint64_t run = (open_.load(std::memory_order_relaxed) & ~kParts) + kRun;
  open_.store(run | parts, std::memory_order_release);
  open_.notify_all();
  std::uint32_t by_helpers = parts;
  while (const std::optional<std::uint32_t> part = begin_part()) {
    do_part(*part);
    --by_helpers;
  }
  for (std::uint32_t done = 0; (done = helped_.load(std::memory_order_acquire)) < by_helpers;) helped_.wait(done);
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::do_part(std::uint32_t part) {
  try {
    task_.call(task_.work, part);
  } catch (...) {
    const std::scoped_lock guard(failure_guard_);
    failure_ = std::current_exception();
  }
}

std::optional<std::uint32_t> Crew::begin_part() {
  std::uint64_t open = open_.load(std::memory_order_acquire);
  while ((open & kParts) != 0) {
    if (open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) {
      return static_cast<std::uint32_t>((open & kParts) - 1);
    }
  }
  return std::nullopt;
}

void Crew::help() {
  while (true) {
    while (const std::optional<std::uint32_t> part = begin_part()) {
      do_part(*part);
      helped_.fetch_add(1, std::memory_order_release);
      helped_.notify_one();
    }
    const std::uint64_t open = open_.load();
    if (ends_.load()) return;
    if ((open & kParts) == 0) open_.wait(open);
  }
}

}  // namespace draftd
