// What running requests generate is drafted from by others, and goes when it has to.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "one_namespace.h"
#include "sealed.h"

namespace draftd::testing {
namespace {

constexpr Token kUnknown = 900'000;

// Whether a request that came just now is drafted what follows `before` in ascending text.
bool follows(Engine& engine, Token before, const RequestOptions& options = sharing_nothing()) {
  Verifier reader(engine, 99);
  reader.open(1, std::vector<Token>{kUnknown, before - 1, before}, options);
  return drafts(reader.step(1, 3, {}, 8), before + 1);
}

std::size_t in_flight(const Engine& engine) { return engine.statistics().in_flight.tokens; }

// A request whose output ascends, some tokens a step.
struct Running {
  Running(Engine& engine, std::uint64_t incarnation, Token first, const RequestOptions& options = {})
      : verifier(engine, incarnation), next(first) {
    verifier.open(1, {}, options, "running");
  }
  Tail generate(std::size_t count, std::uint16_t max_nodes = 0) {
    const std::vector<Token> tokens = ascending(next, count);
    next += static_cast<Token>(count);
    const Tail tail = verifier.step(1, length, tokens, max_nodes);
    length += static_cast<std::uint32_t>(count);
    return tail;
  }
  // The verifier's truth from there on is another.
  void take_back(std::uint32_t to, Token instead) {
    verifier.step(1, to, std::vector<Token>{instead}, 0);
    length = to + 1;
  }

  Verifier verifier;
  Token next;
  std::uint32_t length = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(flight_test)

BOOST_AUTO_TEST_CASE(what_closed_is_in_the_flight_no_more_and_in_the_history) {
  OneNamespace home;
  Running one(home.engine, 1, 0);
  Running other(home.engine, 2, 1000);
  one.generate(40);
  other.generate(40);
  BOOST_CHECK(follows(home.engine, 20));
  BOOST_CHECK_EQUAL(in_flight(home.engine), 80U);
  one.verifier.close(1);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK_EQUAL(in_flight(home.engine), 40U);
  BOOST_CHECK_EQUAL(home.state().head_tokens, 40U);
  BOOST_CHECK(follows(home.engine, 20));
  BOOST_CHECK(follows(home.engine, 1020));
}

BOOST_AUTO_TEST_CASE(dead_text_is_a_small_part_of_a_flight_at_any_time) {
  OneNamespace home;
  std::vector<Running> running;
  running.reserve(200);
  for (Token request = 0; request < 200; ++request) {
    running.emplace_back(home.engine, 1U + static_cast<std::uint64_t>(request), request * 1000);
    running.back().generate(100);
    if (request >= 20) running[static_cast<std::size_t>(request) - 20].verifier.close(1);
    home.engine.index_slice(SIZE_MAX);
    BOOST_REQUIRE_LE(in_flight(home.engine), 20U * 100 * 8 / 7 + 100);
  }
  BOOST_CHECK(follows(home.engine, 190 * 1000 + 50));
}

BOOST_AUTO_TEST_CASE(a_long_output_enters_in_slices) {
  OneNamespace home;
  Running one(home.engine, 1, 0);
  one.generate(5000);
  while (home.engine.index_slice(100) > 0) {
  }
  BOOST_CHECK(home.engine.indexed(home.engine.ticket()));
  for (const Token place : {10, 2500, 4990}) BOOST_CHECK(follows(home.engine, place));
}

BOOST_AUTO_TEST_CASE(a_cursor_into_a_flight_equals_a_fresh_match_whatever_happens_to_it) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  limits.learning = false;  // or both would draft with what memory left of it
  OneNamespace home(limits);
  Verifier reader(home.engine, 50);
  std::vector<Token> text{0, 1};
  reader.open(1, text, sharing_nothing());
  std::vector<Running> running;
  running.reserve(200);
  for (Token round = 0; round < 200; ++round) {
    running.emplace_back(home.engine, 1000U + static_cast<std::uint64_t>(round), round);
    Running& newest = running.back();
    newest.generate(30);
    home.engine.index_slice(kAtOnce);
    switch (round % 4) {  // the newest stays, is closed, is taken back, loses all by eviction
      case 1: newest.verifier.close(1); break;
      case 2: newest.take_back(5, 7); break;
      case 3: running[static_cast<std::size_t>(round) - 1].verifier.share(2, ascending(round * 1000, 20'000)); break;
      default: break;
    }
    home.engine.index_slice(kAtOnce);
    const std::vector<Token> next{round + 2};
    const Tail kept = reader.step(1, static_cast<std::uint32_t>(text.size()), next, 16);
    text.push_back(next[0]);

    Verifier fresh(home.engine, 51);
    fresh.open(1, text, sharing_nothing());
    home.engine.index_slice(kAtOnce);
    BOOST_REQUIRE(kept == fresh.step(1, static_cast<std::uint32_t>(text.size()), {}, 16));
    if (kept.status != Status::kOk) break;  // evicted itself
  }
}

BOOST_AUTO_TEST_CASE(what_is_taken_back_is_replaced_by_what_became_of_it) {
  OneNamespace home;
  Running one(home.engine, 1, 0);
  one.generate(40);
  BOOST_CHECK(follows(home.engine, 30));
  one.take_back(10, 500);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK(!follows(home.engine, 30));
  BOOST_CHECK(follows(home.engine, 5));
}

BOOST_AUTO_TEST_CASE(what_is_forgotten_is_gone_at_once_and_does_not_come_back) {
  OneNamespace home;
  Running one(home.engine, 1, 0);
  Running other(home.engine, 2, 1000);
  Running third(home.engine, 3, 2000);
  one.generate(40);
  other.generate(400);
  other.verifier.open(2, ascending(0, 3), {}, "stays");
  other.verifier.close(1);  // dead, but too little to begin anew for
  third.generate(40);
  const std::vector<std::uint32_t> name_spaces{0};
  home.engine.forget_requests(name_spaces, std::nullopt, {"running"});
  BOOST_CHECK_EQUAL(in_flight(home.engine), 0U);
  one.generate(40);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK_EQUAL(in_flight(home.engine), 0U);
}

BOOST_AUTO_TEST_CASE(what_a_publishing_leaves_out_of_a_history_is_not_in_its_flight_either) {
  OneNamespace home;
  Running stays(home.engine, 1, 0);
  Running closes(home.engine, 2, 1000);
  stays.generate(400);
  closes.generate(40);
  home.engine.index_slice(SIZE_MAX);
  closes.verifier.close(1);
  home.engine.index_slice(SIZE_MAX);
  home.freeze();
  BOOST_CHECK(follows(home.engine, 1020));
  home.engine.publish_history(own(), {}, true, 0.0);
  BOOST_CHECK(!follows(home.engine, 1020));
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK(follows(home.engine, 20));
}

BOOST_AUTO_TEST_CASE(a_flight_counts_for_the_memory_limit_and_goes_with_its_history) {
  EngineLimits limits = kAmple;
  limits.memory = 4 << 20;
  limits.history = 1 << 20;
  Engine engine(limits, false);
  for (std::uint32_t name_space = 0; name_space < 16; ++name_space) {
    engine.create_namespace();
    Verifier verifier(engine, name_space + 1, name_space);
    verifier.now = name_space;
    verifier.open(1, {});
    verifier.step(1, 0, ascending(0, 10'000), 0);
    engine.index_slice(kAtOnce);
    const EngineStatistics figures = engine.statistics();
    BOOST_REQUIRE_LE(figures.own.bytes + figures.history.bytes + figures.in_flight.bytes, limits.memory);
  }
  BOOST_CHECK_GT(in_flight(engine), 0U);
  BOOST_CHECK_LT(in_flight(engine), 160'000U);
}

BOOST_AUTO_TEST_CASE(a_group_that_is_evicted_with_its_flight_may_come_again) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  OneNamespace home(limits);
  Running member(home.engine, 1, 0, sharing_with("team"));
  member.generate(100);
  Verifier busy(home.engine, 2);
  busy.now = 1.0;
  for (std::uint32_t request = 0; request < 10; ++request) {
    busy.open(request, ascending(5000, 3000), sharing_nothing());
    member.verifier.now = busy.now += 1.0;
    home.engine.index_slice(SIZE_MAX);
  }
  BOOST_CHECK_EQUAL(in_flight(home.engine), 0U);
  member.verifier.open(1, ascending(0, 3), sharing_with("team"), "running");
  member.length = 3;
  member.generate(50);
  BOOST_CHECK(follows(home.engine, 120, sharing_with("team")));
  member.verifier.close(1);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK_EQUAL(in_flight(home.engine), 0U);
}

BOOST_AUTO_TEST_CASE(only_finished_outputs_are_shared_where_that_is_wanted) {
  EngineLimits limits = kAmple;
  limits.in_flight = false;
  OneNamespace home(limits);
  Running one(home.engine, 1, 0);
  one.generate(40);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK(!follows(home.engine, 20));
  BOOST_CHECK_EQUAL(in_flight(home.engine), 0U);
  one.verifier.close(1);
  home.engine.index_slice(SIZE_MAX);
  BOOST_CHECK(follows(home.engine, 20));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
