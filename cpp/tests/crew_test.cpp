#include "support/crew.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace draftd::testing {

BOOST_AUTO_TEST_SUITE(crew_test)

BOOST_AUTO_TEST_CASE(every_part_is_done_once_and_seen_by_the_caller) {
  Crew crew(3);
  for (std::uint32_t parts = 0; parts < 200; ++parts) {
    std::vector<int> done(parts, 0);  // each written by one thread, read by the caller alone
    crew.run(parts, [&](std::uint32_t part) { ++done[part]; });
    BOOST_TEST(done == std::vector<int>(parts, 1), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(helpers_do_work_at_the_same_time_as_the_caller) {
  Crew crew(1);
  std::latch both(2);
  crew.run(2, [&](std::uint32_t) { both.arrive_and_wait(); });  // alone it would wait for ever
  BOOST_TEST(both.try_wait());
}

BOOST_AUTO_TEST_CASE(a_caller_does_not_wait_for_another_caller) {
  Crew crew(1);
  std::latch begun(2);
  std::latch over(1);
  std::thread other([&] {
    crew.run(2, [&](std::uint32_t) {
      begun.arrive_and_wait();
      over.wait();
    });
  });
  begun.wait();
  int parts = 0;
  crew.run(5, [&](std::uint32_t) { ++parts; });  // on this thread alone, as no one else is free
  BOOST_TEST(parts == 5);
  over.count_down();
  other.join();
}

BOOST_AUTO_TEST_CASE(many_callers_share_a_crew) {
  constexpr int kRuns = 500;
  constexpr std::uint32_t kParts = 7;
  Crew crew(2);
  std::atomic<std::uint64_t> done = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int run = 0; run < kRuns; ++run) crew.run(kParts, [&](std::uint32_t) { ++done; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  BOOST_TEST(done == 3 * kRuns * kParts);
}

BOOST_AUTO_TEST_CASE(what_a_part_throws_the_caller_gets_after_all_parts) {
  Crew crew(1);
  std::latch both(2);
  std::atomic<int> done = 0;
  const auto work = [&](std::uint32_t part) {
    if (part < 2) both.arrive_and_wait();  // one of them is the helper's
    ++done;
    if (part < 2) throw std::runtime_error("out of luck");
  };
  BOOST_CHECK_THROW(crew.run(8, work), std::runtime_error);
  BOOST_TEST(done == 8);
  crew.run(3, [&](std::uint32_t) { ++done; });
  BOOST_TEST(done == 11);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
