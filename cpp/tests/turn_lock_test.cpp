#include "support/turn_lock.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

namespace draftd::testing {

BOOST_AUTO_TEST_SUITE(turn_lock_test)

BOOST_AUTO_TEST_CASE(who_is_alone_is_alone_and_who_shares_sees_all_of_what_was_done) {
  constexpr int kRounds = 2000;
  TurnLock lock;
  // Equal whenever nobody is alone.
  int one = 0;
  int other = 0;
  std::atomic<int> torn = 0;
  const auto change = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const std::scoped_lock alone(lock);
      ++one;
      ++other;
    }
  };
  const auto look = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const std::shared_lock shared(lock);
      if (one != other) ++torn;
    }
  };
  const auto either = [&] {
    for (int round = 0; round < kRounds; ++round) {
      Turn turn(lock);
      if (round % 16 == 0) turn.insist();
      if (turn.alone()) {
        ++one;
        ++other;
      }
      turn.share();
      if (one != other) ++torn;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(change);
    threads.emplace_back(look);
    threads.emplace_back(either);
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_CHECK_EQUAL(torn.load(), 0);
  BOOST_CHECK_GE(one, 2 * kRounds);
}

BOOST_AUTO_TEST_CASE(sharing_waits_for_nobody_who_shares) {
  TurnLock lock;
  Turn first(lock);
  BOOST_CHECK(first.alone());
  first.share();
  std::thread([&] {
    const Turn second(lock);
    BOOST_CHECK(!second.alone());
    const std::shared_lock third(lock);
  }).join();
}

// Somebody shares it at any time, and yet who wants to be alone gets it.
BOOST_AUTO_TEST_CASE(sharing_without_a_gap_starves_nobody) {
  TurnLock lock;
  std::atomic<bool> over = false;
  std::latch shared(2);
  const auto share = [&] {
    bool first = true;
    while (!over) {
      const std::shared_lock held(lock);
      if (std::exchange(first, false)) {
        shared.arrive_and_wait();
      }
    }
  };
  std::thread one(share);
  std::thread other(share);
  int rounds = 0;
  for (; rounds < 100; ++rounds) const std::scoped_lock alone(lock);
  over = true;
  one.join();
  other.join();
  BOOST_CHECK_EQUAL(rounds, 100);  // or the test would not end
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
