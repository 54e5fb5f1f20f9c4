// What goes into one end comes out of the other, whole and in order, whatever the sizes; and a peer's nonsense breaks
// the ring, not the process. Run with the thread sanitizer it shows that both ends agree on who may touch what.
#include "draftd/ring.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace draftd::testing {
namespace {

constexpr std::size_t kLongest = 8 << 20;
constexpr auto kForEver = Ring::Clock::time_point::max();

// Both ends over one mapping, as the thread sanitizer knows addresses, not pages.
struct Pair {
  explicit Pair(std::size_t longest = kLongest) {
    const int file = RingMemory::create();
    memory = std::make_shared<RingMemory>(file);
    ::close(file);
    int sockets[2];
    BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    server = std::make_unique<Ring>(memory, sockets[0], RingEnd::kServer, longest, true);
    client = std::make_unique<Ring>(memory, sockets[1], RingEnd::kClient, longest, true);
  }
  std::shared_ptr<RingMemory> memory;
  std::unique_ptr<Ring> server, client;
};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string received(Ring& ring) {
  std::string frame;
  while (true) {
    ring.flush();
    if (ring.take(frame)) return frame;
    ring.wait(kBytes | (ring.unsent() > 0 ? kRoom : kNothing), kForEver, {});
  }
}

std::string frame_of(std::mt19937& random) {
  // Mostly short, at times around a lane, at times longer than that.
  const unsigned kind = random() % 64;
  std::size_t size = random() % 5000;
  if (kind == 0) size = kLaneBytes - 8 + random() % 16;
  if (kind == 1) size = 3 * kLaneBytes + random() % 100;
  std::string frame(size, static_cast<char>('a' + random() % 26));
  return frame;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ring_test)

BOOST_AUTO_TEST_CASE(frames_come_back_as_they_were_sent) {
  Pair pair;
  constexpr int kFrames = 2000;
  bool client_is_gone = false;
  std::thread echo([&] {
    try {
      while (true) pair.server->send(bytes_of(received(*pair.server)));
    } catch (const RingBroken&) {
      client_is_gone = true;
    }
  });
  std::mt19937 random(7);
  for (int number = 0; number < kFrames; ++number) {
    const std::string frame = frame_of(random);
    BOOST_REQUIRE(pair.client->send(bytes_of(frame)));
    BOOST_REQUIRE(received(*pair.client) == frame);
  }
  pair.client.reset();
  echo.join();
  BOOST_TEST(client_is_gone);
}

BOOST_AUTO_TEST_CASE(many_frames_one_way_arrive_in_order) {
  Pair pair;
  constexpr std::uint32_t kFrames = 20000;
  std::thread sender([&] {
    std::string frame(300, ' ');
    for (std::uint32_t number = 0; number < kFrames; ++number) {
      std::memcpy(frame.data(), &number, sizeof number);
      if (!pair.client->send(bytes_of(frame))) return;  // the other thread then waits in vain, and the test fails
    }
    while (pair.client->unsent() > 0) {
      pair.client->wait(kRoom, kForEver, {});
      pair.client->flush();
    }
  });
  for (std::uint32_t number = 0; number < kFrames; ++number) {
    const std::string frame = received(*pair.server);
    std::uint32_t found = 0;
    std::memcpy(&found, frame.data(), sizeof found);
    BOOST_REQUIRE_EQUAL(found, number);
  }
  sender.join();
}

BOOST_AUTO_TEST_CASE(a_peer_that_reads_nothing_is_kept_for_up_to_a_bound) {
  Pair pair;
  const std::string frame(1 << 20, 'x');
  std::size_t taken = 0;
  while (pair.client->send(bytes_of(frame))) ++taken;
  BOOST_TEST(taken >= 64U);
  BOOST_TEST(taken <= 66U);
  for (std::size_t number = 0; number < taken; ++number) {
    pair.client->flush();
    std::string got;
    while (!pair.server->take(got)) pair.client->flush();
    BOOST_REQUIRE(got == frame);
  }
  BOOST_TEST(pair.client->unsent() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_sent_before_the_end_is_received_before_the_end_is_told) {
  Pair pair;
  pair.client->send(bytes_of("last words"));
  pair.client.reset();
  BOOST_TEST(received(*pair.server) == "last words");
  BOOST_CHECK_THROW(received(*pair.server), RingBroken);
}

BOOST_AUTO_TEST_CASE(half_a_frame_is_none_once_the_peer_is_gone) {
  Pair pair;
  pair.client->send(bytes_of(std::string(2 * kLaneBytes, 'x')));
  pair.client.reset();
  BOOST_CHECK_THROW(received(*pair.server), RingBroken);
}

BOOST_AUTO_TEST_CASE(a_frame_above_the_limit_breaks_the_ring_before_it_takes_memory) {
  Pair pair(1000);
  pair.client->send(bytes_of(std::string(1001, 'x')));
  BOOST_CHECK_THROW(received(*pair.server), RingBroken);
}

BOOST_AUTO_TEST_CASE(impossible_positions_break_the_ring) {
  std::mt19937_64 random(11);
  int broken = 0;
  for (int number = 0; number < 1000; ++number) {
    Pair pair;
    RingState& scribbled = pair.memory->state(RingEnd::kClient);
    scribbled.written.store(number % 2 != 0 ? random() : random() % (2 * kLaneBytes));
    scribbled.taken.store(number % 3 != 0 ? random() : 0);
    scribbled.waits_for.store(static_cast<std::uint32_t>(random()));
    for (std::size_t byte = 0; byte < 64; ++byte) {
      pair.memory->lane_to(RingEnd::kServer)[byte] = static_cast<std::uint8_t>(random());
    }
    std::string frame;
    try {
      for (int turn = 0; turn < 10; ++turn) {
        pair.server->take(frame);
        BOOST_REQUIRE(frame.size() <= kLongest);
        pair.server->send(bytes_of("answer"));
      }
    } catch (const RingBroken&) {
      ++broken;
    }
  }
  BOOST_TEST(broken > 900);  // with numbers that could be true it goes on
}

BOOST_AUTO_TEST_CASE(memory_that_could_be_cut_is_refused) {
  char name[] = "/tmp/draftd-ring-test-XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  BOOST_CHECK_THROW(RingMemory memory(file), RingBroken);
  ::close(file);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
