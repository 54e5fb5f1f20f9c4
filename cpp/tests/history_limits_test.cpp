#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "one_namespace.h"
#include "sealed.h"

namespace draftd::testing {

BOOST_AUTO_TEST_SUITE(history_limits_test)

BOOST_AUTO_TEST_CASE(memory_pressure_drops_heads_and_no_segment) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  OneNamespace one(limits);
  for (const char* const group : {"", "team"}) {
    const RequestOptions options = *group == '\0' ? RequestOptions{} : sharing_with(group);
    one.share(ascending(10, 100), "sealed", 0, options);
    const HistoryKey key{0, group};
    one.freeze(key);
    one.engine.publish_history(key, {sealed({ascending(10, 100)})}, true, 0.0);
    one.share(ascending(500, 100), "in the head", 0, options);
  }
  Verifier hungry(one.engine, 2);
  hungry.open(1, ascending(0, 14'000));
  hungry.open(2, ascending(0, 14'000));
  hungry.open(3, ascending(0, 14'000));
  one.engine.index_slice(SIZE_MAX);
  for (const char* const group : {"", "team"}) {
    BOOST_CHECK_EQUAL(one.state({0, group}).segments, 1U);
    BOOST_CHECK_EQUAL(one.state({0, group}).head_tokens, 0U);
  }
}

BOOST_AUTO_TEST_CASE(without_a_keeper_the_older_head_is_dropped_and_counted) {
  EngineLimits limits = kAmple;
  limits.history = 1 << 18;
  OneNamespace one(limits);
  std::size_t shared = 0;
  for (Token document = 0; document < 500; ++document) {
    one.share(ascending(document * 1000, 100), std::to_string(document));
    shared += 100;
    BOOST_REQUIRE_LE(one.engine.statistics().history.bytes, limits.history);
  }
  const EngineStatistics statistics = one.engine.statistics();
  BOOST_CHECK_GT(statistics.forgotten_tokens, 0U);
  BOOST_CHECK_EQUAL(statistics.forgotten_tokens + statistics.history.tokens, shared);
  // What was never sealed is handed out oldest first, whole.
  const HistoryDocuments older = one.freeze();
  BOOST_CHECK_EQUAL(older.generation + 1, one.state().generation);
  one.engine.publish_history(own(), {}, true, 0.0);
  const HistoryDocuments newer = one.freeze();
  BOOST_CHECK_EQUAL(newer.generation, older.generation + 1);
  BOOST_CHECK_EQUAL(newer.labels.back(), "499");
}

BOOST_AUTO_TEST_CASE(a_head_that_outgrew_the_limit_is_not_mistaken_for_the_one_being_sealed) {
  EngineLimits limits = kAmple;
  limits.history = 1 << 18;
  OneNamespace one(limits);
  one.share(ascending(0, 100), "being sealed");
  const HistoryDocuments frozen = one.freeze();
  const std::uint64_t head = one.state().generation;
  Token document = 1;
  while (one.state().generation == head) one.share(ascending(1000 * document++, 100), "later");
  one.engine.publish_history(own(), {sealed(texts_of(frozen))}, true, 0.0);
  const HistoryDocuments next = one.freeze();
  BOOST_CHECK_EQUAL(next.generation, head);
}

BOOST_AUTO_TEST_CASE(segments_count_and_the_oldest_goes_first_over_the_limit) {
  EngineLimits limits = kAmple;
  limits.history = 1 << 20;
  OneNamespace one(limits);
  SegmentSet segments;
  std::size_t segment_tokens = 0;
  for (Token document = 0; document < 4; ++document) {
    std::vector<Token> text;  // a segment of it is not much smaller than a head
    for (int times = 0; times < 9; ++times) {
      for (const Token token : ascending(10'000 * document, 2000)) text.push_back(token);
    }
    one.share(text, "request");
    const HistoryDocuments frozen = one.freeze();
    segments.push_back(sealed(texts_of(frozen)));
    segment_tokens += frozen.tokens.size();
    one.engine.publish_history(own(), segments, true, 0.0);
  }
  BOOST_CHECK_EQUAL(one.state().segments, 4U);
  BOOST_CHECK_EQUAL(one.engine.statistics().history.tokens, segment_tokens);

  for (Token document = 4; one.state().segments > 1; ++document) {
    one.share(ascending(10'000 * document, 2000), "request");
    BOOST_REQUIRE_LE(one.engine.statistics().history.bytes, limits.history);
    BOOST_REQUIRE_LT(document, 1000);
  }
  BOOST_CHECK_GE(one.engine.statistics().forgotten_tokens, 3 * 18'000U);
}

BOOST_AUTO_TEST_CASE(a_group_that_was_evicted_comes_back_with_a_later_generation) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  OneNamespace one(limits);
  one.share(ascending(0, 10), "request", 0, sharing_with("team"));
  one.freeze(of_team());
  const std::uint64_t generation = one.state(of_team()).generation;
  one.writer.now = 1.0;
  while (one.engine.histories().size() > 1) {
    one.writer.now += 1.0;
    one.share(ascending(0, 5000), "request");
  }
  BOOST_CHECK_GT(one.engine.statistics().forgotten_tokens, 0U);
  one.share(ascending(0, 10), "request", 0, sharing_with("team"));
  BOOST_CHECK_GT(one.state(of_team()).generation, generation);
}

BOOST_AUTO_TEST_CASE(labels_count) {
  OneNamespace one;
  const std::size_t before = one.engine.statistics().history.bytes;
  one.share(ascending(0, 1), std::string(100'000, 'x'));
  BOOST_CHECK_GE(one.engine.statistics().history.bytes, before + 100'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
