#include "draftd/engine.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "sealed.h"
#include "verifier.h"

namespace draftd::testing {

BOOST_AUTO_TEST_SUITE(engine_test)

BOOST_AUTO_TEST_CASE(what_is_acknowledged_as_indexed_is_seen_by_the_next_query) {
  Engine engine(kAmple, true);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  for (Token round = 0; round < 1000; ++round) {
    const std::vector<Token> output{10 * round, 10 * round + 1, 10 * round + 2};
    verifier.share(1, output);
    BOOST_REQUIRE(engine.wait_indexed(engine.ticket(), 60.0));
    verifier.open(2, std::span(output).first(2));
    BOOST_REQUIRE(drafts(verifier.step(2, 2, {}, 8), output[2]));
  }
}

BOOST_AUTO_TEST_CASE(steps_openings_and_indexing_may_run_at_the_same_time) {
  Engine engine(kAmple, true);
  engine.create_namespace();
  std::atomic<int> refused = 0;  // Boost.Test's own checks are for one thread
  const auto live = [&](std::uint64_t incarnation) {
    Verifier verifier(engine, incarnation);
    for (Token round = 0; round < 50; ++round) {
      verifier.open(1, ascending(0, 1000));
      for (std::uint32_t length = 1000; length < 1010; ++length) {
        const std::vector<Token> token{static_cast<Token>(length)};
        const Tail tail = verifier.step(1, length, token, 8);
        if (tail.status != Status::kOk) ++refused;
      }
      verifier.close(1);
      engine.expire(0.0);
      engine.statistics();
    }
  };
  const auto publish = [&] {
    const auto corpus = sealed({ascending(0, 500)});
    for (int round = 0; round < 50; ++round) {
      engine.publish_corpus(0, 1, {corpus});
      engine.withdraw_corpus(0, 1);
    }
  };
  std::thread other(live, 2);
  std::thread corpora(publish);
  live(1);
  other.join();
  corpora.join();
  BOOST_CHECK_EQUAL(refused.load(), 0);
  BOOST_CHECK(engine.wait_indexed(engine.ticket(), 60.0));
}

// Else its drafts would depend on when somebody looked.
BOOST_AUTO_TEST_CASE(a_verifier_among_those_that_only_look_is_alone) {
  Engine engine(kAmple, true);
  engine.create_namespace();
  const std::vector<Token> text = ascending(0, 600);
  std::atomic<bool> over = false;
  std::atomic<int> looks = 0;
  std::thread looking([&] {
    for (; !over; ++looks) {
      engine.statistics();
      engine.histories();
      engine.lessons();
      engine.learned(0);
      engine.explain(0, {}, std::span(text).first(50), {});
    }
  });
  Verifier verifier(engine, 1);
  for (std::uint32_t request = 0; request < 50 || looks < 100; ++request) {
    verifier.open(request, std::span(text).first(20));
    for (std::uint32_t length = 20; length < 50; length += 3) {
      verifier.step(request, length, std::span(text).subspan(length, 3), 16);
    }
    verifier.close(request);
  }
  over = true;
  looking.join();
  BOOST_CHECK_EQUAL(engine.statistics().accompanied_steps, 0U);
}

// Lives through a request that takes a token back, until it was evicted or all is over; how many answers were wrong.
int answers_that_are_none(Verifier& verifier, std::uint32_t number, std::span<const Token> text,
                          const std::atomic<bool>& over) {
  int wrong = 0;
  const std::uint32_t request = number % 4;
  verifier.open(request, text.first(500));  // what was open there before is replaced
  std::uint32_t length = 500;
  for (int round = 0; round < 10 && !over; ++round) {
    const Tail tail = verifier.step(request, length, text.subspan(length, 3), 16);
    length += 3;
    if (tail.status == Status::kNeedSync) break;
    if (tail.status != Status::kOk || tail.base != length) ++wrong;
    if (round % 3 == 0) {  // it may be evicted in between
      const std::size_t shown = verifier.shown(request, 500);
      const Tail again = verifier.redraft(request, text.subspan(length, 8));
      if (again.status == Status::kNeedSync) break;
      if (shown != length - 500 || again.base != length || !drafts(again, text[length])) ++wrong;
    }
    if (round == 5) {
      verifier.step(request, length - 2, text.first(1), 16);
      length -= 1;
    }
  }
  if (number % 2 == 0) verifier.close(request);
  return wrong;
}

// Of a history and a model that they share, with everything that changes those.
BOOST_AUTO_TEST_CASE(verifiers_draft_beside_each_other_and_what_they_leave_is_whole) {
  constexpr std::uint64_t kVerifiers = 3;
  EngineLimits limits = kAmple;
  limits.memory = limits.history = std::size_t{8} << 20;
  Engine engine(limits, true);
  engine.create_namespace();
  const std::vector<Token> text = ascending(0, 600);
  std::atomic<bool> over = false;
  std::atomic<int> wrong = 0;  // Boost.Test's own checks are for one thread
  const auto live = [&](std::uint64_t incarnation) {
    Verifier verifier(engine, incarnation);
    for (std::uint32_t number = 0; !over; ++number) wrong += answers_that_are_none(verifier, number, text, over);
  };
  std::vector<std::thread> verifiers;
  for (std::uint64_t incarnation = 1; incarnation <= kVerifiers; ++incarnation) {
    verifiers.emplace_back(live, incarnation);
  }
  const auto corpus = sealed({text});
  for (int round = 0; round < 20 || engine.statistics().accompanied_steps == 0; ++round) {
    engine.publish_corpus(0, 1, {corpus});
    if (engine.freeze_history({0, ""})) engine.publish_history({0, ""}, {}, true, 0.0);
    engine.drain_history();
    engine.explain(0, {}, std::span(text).first(50), {});
    engine.learned(0);
    engine.expire(0.0);
    engine.withdraw_corpus(0, 1);
  }
  over = true;
  for (std::thread& verifier : verifiers) verifier.join();
  BOOST_CHECK_EQUAL(wrong.load(), 0);
  BOOST_CHECK(engine.wait_indexed(engine.ticket(), 60.0));
  BOOST_CHECK_LE(engine.statistics().own.bytes + engine.statistics().in_flight.bytes, limits.memory);
  const std::uint64_t open = engine.statistics().sessions;
  BOOST_CHECK_EQUAL(engine.expire(1e9), open);
  BOOST_CHECK_EQUAL(engine.statistics().sessions, 0U);
}

BOOST_AUTO_TEST_CASE(a_history_stays_under_its_limit_and_keeps_the_newest) {
  constexpr std::size_t kLimit = 1 << 20;
  EngineLimits limits = kAmple;
  limits.history = kLimit;
  Engine engine(limits, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  constexpr std::size_t kDocument = 200;
  constexpr auto kDocuments = static_cast<Token>(10 * kLimit / sizeof(Token) / kDocument);
  for (Token document = 0; document < kDocuments; ++document) {
    verifier.share(1, ascending(document * 1000, kDocument));
    while (engine.index_slice(256) > 0) {
      BOOST_REQUIRE_LE(engine.statistics().history.bytes, kLimit);
    }
  }
  BOOST_CHECK_GE(engine.statistics().history.bytes, kLimit / 4);

  const Token newest = (kDocuments - 1) * 1000;
  verifier.open(2, std::vector<Token>{newest, newest + 1});
  BOOST_CHECK(drafts(verifier.step(2, 2, {}, 8), newest + 2));
  verifier.open(3, std::vector<Token>{0, 1});
  BOOST_CHECK(!drafts(verifier.step(3, 2, {}, 8), 2));
}

BOOST_AUTO_TEST_CASE(a_cursor_into_a_history_that_was_forgotten_equals_a_fresh_match) {
  EngineLimits limits = kAmple;
  limits.history = 1 << 17;
  Engine engine(limits, false);
  engine.create_namespace();
  Verifier writer(engine, 1);
  Verifier reader(engine, 2);
  RequestOptions hidden;
  hidden.share = Share::kNothing;
  std::vector<Token> text{0, 1};
  reader.open(1, text, hidden);
  for (Token document = 0; document < 200; ++document) {
    writer.share(1, ascending(document, 100));
    engine.index_slice(kAtOnce);
    const std::vector<Token> next{document + 2};
    const Tail kept = reader.step(1, static_cast<std::uint32_t>(text.size()), next, 16);
    text.push_back(next[0]);

    Verifier fresh(engine, 3);
    fresh.open(1, text, hidden);
    engine.index_slice(kAtOnce);
    BOOST_REQUIRE(kept == fresh.step(1, static_cast<std::uint32_t>(text.size()), {}, 16));
  }
}

BOOST_AUTO_TEST_CASE(a_corpus_that_was_replaced_is_read_anew) {
  Engine engine(kAmple, false);
  engine.create_namespace();
  Verifier reader(engine, 1);
  reader.open(1, ascending(0, 3));
  for (Token round = 0; round < 20; ++round) {
    engine.publish_corpus(0, 1, {sealed({{1, 2, 1000 + round}})});
    BOOST_CHECK(drafts(reader.step(1, 3, {}, 4), 1000 + round));
    engine.withdraw_corpus(0, 1);
    BOOST_CHECK(reader.step(1, 3, {}, 4).reason == Reason::kNoMatch);
  }
}

BOOST_AUTO_TEST_CASE(over_the_memory_limit_the_longest_unused_session_goes) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  Engine engine(limits, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  for (std::uint32_t request = 0; request < 100; ++request) {
    verifier.now += 1.0;
    BOOST_REQUIRE(verifier.open(request, ascending(static_cast<Token>(request * 1000), 1000)) == Status::kOk);
    engine.index_slice(kAtOnce);
    const EngineStatistics statistics = engine.statistics();
    BOOST_REQUIRE_LE(statistics.own.bytes + statistics.history.bytes, limits.memory);
  }
  const EngineStatistics statistics = engine.statistics();
  BOOST_CHECK_EQUAL(statistics.sessions + statistics.evicted_sessions, 100U);
  BOOST_CHECK_GT(statistics.evicted_sessions, 0U);
  BOOST_CHECK(verifier.step(99, 1000, {}, 4).status == Status::kOk);
  BOOST_CHECK(verifier.step(0, 1000, {}, 4).status == Status::kNeedSync);
}

BOOST_AUTO_TEST_CASE(histories_of_idle_namespaces_make_room_for_requests_in_use) {
  EngineLimits limits = kAmple;
  limits.memory = 8 << 20;
  limits.history = 4 << 20;
  Engine engine(limits, false);
  std::size_t most = 0;
  for (std::uint32_t name_space = 0; name_space < 32; ++name_space) {
    Verifier verifier(engine, name_space + 1, engine.create_namespace());
    verifier.now = 1.0 + name_space;
    verifier.share(1, ascending(0, 20'000));
    engine.index_slice(kAtOnce);
    const EngineStatistics statistics = engine.statistics();
    most = std::max(most, statistics.own.bytes + statistics.history.bytes);
    BOOST_REQUIRE(verifier.open(2, ascending(5'000, 3)) == Status::kOk);
    BOOST_REQUIRE(drafts(verifier.step(2, 3, {}, 4), 5'003));
  }
  BOOST_CHECK_LE(most, limits.memory);
  BOOST_CHECK_GT(most, limits.memory / 2);
}

BOOST_AUTO_TEST_CASE(a_closed_request_counts_until_it_is_shared) {
  constexpr Token kTokens = 10'000;
  Engine engine(kAmple, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  verifier.open(1, ascending(0, kTokens));
  verifier.close(1);
  BOOST_CHECK_GE(engine.statistics().own.bytes, kTokens * sizeof(Token));  // its index is kept apart
  engine.index_slice(kAtOnce);
  BOOST_CHECK_EQUAL(engine.statistics().own.bytes, 0U);
}

BOOST_AUTO_TEST_CASE(an_opening_that_can_never_fit_is_refused) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 16;
  Engine engine(limits, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  BOOST_CHECK(verifier.open(1, ascending(0, 100'000)) == Status::kLimitExceeded);
  BOOST_CHECK_EQUAL(engine.statistics().sessions, 0U);
}

BOOST_AUTO_TEST_CASE(a_long_prompt_is_indexed_behind_the_steps) {
  Engine engine(kAmple, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  std::vector<Token> prompt = ascending(0, 5000);
  prompt.push_back(4000);
  verifier.open(1, prompt);
  BOOST_CHECK(!engine.indexed(engine.ticket()));
  BOOST_CHECK(!drafts(verifier.step(1, 5001, {}, 8), 4001));
  while (engine.index_slice(100) > 0) {
  }
  BOOST_CHECK(engine.indexed(engine.ticket()));
  BOOST_CHECK(drafts(verifier.step(1, 5001, {}, 8), 4001));
}

BOOST_AUTO_TEST_CASE(limits_that_cannot_be_kept_are_refused) {
  EngineLimits none = kAmple;
  none.max_nodes = 0;
  BOOST_CHECK_THROW(Engine(none, false), std::invalid_argument);
  EngineLimits many = kAmple;
  many.max_nodes = 40'000;
  BOOST_CHECK_THROW(Engine(many, false), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(more_corpora_than_a_request_can_read_are_refused) {
  Engine engine(kAmple, false);
  engine.create_namespace();
  const auto corpus = sealed({{1}});
  std::uint32_t published = 0;
  const auto publish_many = [&] {
    while (published < 100) engine.publish_corpus(0, published++, {corpus});
  };
  BOOST_CHECK_THROW(publish_many(), std::length_error);
  BOOST_CHECK_LT(published, kMaxSources);
  engine.publish_corpus(0, 0, {corpus});  // replacing one is no more
}

BOOST_AUTO_TEST_CASE(an_unknown_namespace_is_refused) {
  Engine engine(kAmple, false);
  Verifier verifier(engine, 1);
  BOOST_CHECK_THROW(verifier.open(1, {}), std::out_of_range);
  BOOST_CHECK_THROW(engine.withdraw_corpus(7, 1), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(an_empty_step_is_a_sign_of_life) {
  Engine engine(kAmple, false);
  engine.create_namespace();
  Verifier verifier(engine, 1);
  verifier.open(1, ascending(0, 3));
  TailColumns tails;
  engine.step(1, {}, 500.0, tails);
  BOOST_CHECK(tails.status.empty());
  engine.expire(700.0);
  BOOST_CHECK_EQUAL(engine.statistics().verifiers, 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
