// A lock that is held by one alone or shared by several, in the order in which
// it was asked for: neither side can starve the other, which a std::shared_mutex
// allows. Whoever has its turn and shares lets the next have theirs at once; who
// wants to be alone keeps the turn, and waits until the last that shares has left.
#pragma once

#include <atomic>
#include <cstdint>

namespace draftd {

class TurnLock {
 public:
  // Alone, for work that nobody waits for: lets those that share come and go
  // kPatience times before it asks for its turn, since from then on whoever comes
  // waits with it.
  void lock() {
    for (int departures = 0; departures < kPatience && await_departure(); ++departures) {
    }
    await_turn();
    while (await_departure()) {
    }
  }
  void unlock() { pass_turn(); }

  void lock_shared() {
    await_turn();
    downgrade();
  }
  void unlock_shared() {
    departed_.fetch_add(1, std::memory_order_release);
    departed_.notify_all();
  }

  // Alone if nobody shares it when the turn comes; else shared. Never waits for
  // those that share. Returns whether it is alone.
  bool lock_alone_or_shared() {
    await_turn();
    if (!is_shared()) return true;
    downgrade();
    return false;
  }
  // From alone to shared, with nobody in between.
  void downgrade() {
    arrived_.fetch_add(1, std::memory_order_relaxed);
    pass_turn();
  }

 private:
  static constexpr int kPatience = 4;

  void await_turn() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t serving = serving_.load(std::memory_order_acquire); serving != ticket;
         serving = serving_.load(std::memory_order_acquire)) {
      serving_.wait(serving, std::memory_order_acquire);
    }
  }
  void pass_turn() {
    serving_.fetch_add(1, std::memory_order_release);
    serving_.notify_all();
  }
  // Only who has the turn can rely on a "no".
  bool is_shared() const {
    return departed_.load(std::memory_order_acquire) != arrived_.load(std::memory_order_relaxed);
  }
  // False if nobody shares it; else returns when somebody has left.
  bool await_departure() const {
    const std::uint32_t departed = departed_.load(std::memory_order_acquire);
    if (departed == arrived_.load(std::memory_order_relaxed)) return false;
    departed_.wait(departed, std::memory_order_acquire);
    return true;
  }

  std::atomic<std::uint32_t> next_{0};      // ticket
  std::atomic<std::uint32_t> serving_{0};   // ticket whose turn it is
  std::atomic<std::uint32_t> arrived_{0};   // that share or shared; grows in one's turn
  std::atomic<std::uint32_t> departed_{0};  // of them, those that left
};

// A hold of the lock that is alone where nobody shares it, and else in company.
class Turn {
 public:
  explicit Turn(TurnLock& lock) : lock_(lock), alone_(lock.lock_alone_or_shared()) {}
  ~Turn() {
    if (alone_) {
      lock_.unlock();
    } else {
      lock_.unlock_shared();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool alone() const { return alone_; }
  // From now on others may share it.
  void share() {
    if (alone_) lock_.downgrade();
    alone_ = false;
  }
  // From now on it is alone. In company it is let go meanwhile.
  void insist() {
    if (alone_) return;
    lock_.unlock_shared();
    lock_.lock();
    alone_ = true;
  }

 private:
  TurnLock& lock_;
  bool alone_;
};

}  // namespace draftd
