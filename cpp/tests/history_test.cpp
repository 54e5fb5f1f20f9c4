#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "draftd/engine.h"
#include "sealed.h"
#include "verifier.h"

namespace draftd::testing {
namespace {

HistoryKey own() { return {0, ""}; }
HistoryKey of_team() { return {0, "team"}; }

RequestOptions sharing_with(const std::string& group) {
  RequestOptions options;
  options.share = Share::kGroup;
  options.group = group;
  return options;
}

RequestOptions sharing_nothing() {
  RequestOptions options;
  options.share = Share::kNothing;
  return options;
}

// What a request with this prompt is drafted.
Tail draft(Engine& engine, std::span<const Token> prompt, const RequestOptions& options = sharing_nothing()) {
  Verifier reader(engine, 99);
  reader.open(1, prompt, options);
  return reader.step(1, static_cast<std::uint32_t>(prompt.size()), {}, 8);
}

std::vector<std::vector<Token>> texts_of(const HistoryDocuments& documents) {
  std::vector<std::vector<Token>> texts;
  std::int64_t begin = 0;
  for (const std::int64_t end : documents.document_end) {
    texts.emplace_back(documents.tokens.begin() + begin, documents.tokens.begin() + end);
    begin = end;
  }
  return texts;
}

// Adds up what is drained, in tokens by label.
void drain(Engine& engine, std::map<std::string, std::size_t>& tokens) {
  for (const HistoryDocuments& documents : engine.drain_history()) {
    const auto texts = texts_of(documents);
    for (std::size_t i = 0; i < texts.size(); ++i) tokens[documents.labels[i]] += texts[i].size();
  }
}

struct OneNamespace {
  explicit OneNamespace(EngineLimits limits = kAmple) : engine(limits, false) { engine.create_namespace(); }
  void share(std::span<const Token> output, const std::string& label, std::int64_t time = 0,
             const RequestOptions& options = {}) {
    writer.share(1, output, options, label, time);
    engine.index_slice(SIZE_MAX);
  }
  // Of a history that has something to freeze.
  HistoryDocuments freeze(const HistoryKey& key = own()) {
    auto frozen = engine.freeze_history(key);
    if (!frozen) throw std::logic_error("nothing to freeze");
    return *std::move(frozen);
  }
  HistoryState state(const HistoryKey& key = own()) const {
    for (HistoryState& state : engine.histories()) {
      if (state.history.group == key.group) return state;
    }
    throw std::out_of_range("no history of group " + key.group);
  }

  Engine engine;
  Verifier writer{engine, 1};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(history_test)

BOOST_AUTO_TEST_CASE(a_document_is_drained_once_whole_with_its_label_and_time) {
  OneNamespace one;
  BOOST_CHECK(one.engine.drain_history().empty());
  one.share(ascending(10, 3), "first", 1000);
  one.share(ascending(20, 2), "second", 1001);
  one.share(ascending(30, 1), "of the team", 1002, sharing_with("team"));
  const auto drained = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 2U);
  BOOST_CHECK((drained[0].tokens == std::vector<Token>{10, 11, 12, 20, 21}));
  BOOST_CHECK((drained[0].document_end == std::vector<std::int64_t>{3, 5}));
  BOOST_CHECK((drained[0].labels == std::vector<std::string>{"first", "second"}));
  BOOST_CHECK((drained[0].times == std::vector<std::int64_t>{1000, 1001}));
  BOOST_CHECK_EQUAL(drained[0].history.group, "");
  BOOST_CHECK_EQUAL(drained[1].history.group, "team");
  BOOST_CHECK((drained[1].tokens == std::vector<Token>{30}));
  BOOST_CHECK(one.engine.drain_history().empty());

  one.share(ascending(40, 2), "third", 1003);
  const auto later = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(later.size(), 1U);
  BOOST_CHECK((later[0].labels == std::vector<std::string>{"third"}));
}

BOOST_AUTO_TEST_CASE(a_document_longer_than_a_slice_is_drained_whole) {
  OneNamespace one;
  const std::vector<Token> text = ascending(0, 200'000);
  one.share(ascending(1, 5), "before");
  one.share(text, "long");
  one.share(ascending(2, 5), "behind");
  const auto drained = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 1U);
  BOOST_REQUIRE((drained[0].document_end == std::vector<std::int64_t>{5, 200'005, 200'010}));
  BOOST_CHECK(std::equal(text.begin(), text.end(), drained[0].tokens.begin() + 5));
}

BOOST_AUTO_TEST_CASE(a_document_is_drained_when_it_is_finished) {
  OneNamespace one;
  one.writer.share(1, ascending(0, 100), {}, "slow");
  one.engine.index_slice(200);  // the own text; the output is shared behind it
  one.writer.share(1, ascending(0, 100), {}, "slow");
  one.engine.index_slice(50);
  BOOST_CHECK_EQUAL(one.state().head_tokens, 150U);
  BOOST_CHECK_EQUAL(one.engine.drain_history()[0].tokens.size(), 100U);
  one.engine.index_slice(50);
  BOOST_CHECK_EQUAL(one.engine.drain_history()[0].tokens.size(), 100U);
}

BOOST_AUTO_TEST_CASE(what_is_frozen_is_drafted_from_until_it_is_dropped) {
  OneNamespace one;
  one.share(ascending(0, 10), "old", 7);
  const std::uint64_t generation = one.state().generation;
  const HistoryDocuments frozen = one.freeze();
  BOOST_CHECK_EQUAL(frozen.generation, generation);
  BOOST_CHECK_EQUAL(one.state().generation, generation + 1);
  BOOST_CHECK_EQUAL(one.state().frozen_tokens, 10U);
  BOOST_CHECK_EQUAL(one.state().oldest, 7);
  BOOST_CHECK((frozen.labels == std::vector<std::string>{"old"}));

  one.share(ascending(100, 10), "new", 8);
  BOOST_CHECK(!one.engine.freeze_history(own()));  // one is held already
  BOOST_CHECK(drafts(draft(one.engine, ascending(0, 3)), 3));
  BOOST_CHECK(drafts(draft(one.engine, ascending(100, 3)), 103));

  one.engine.publish_history(own(), {}, true, 0.0);
  BOOST_CHECK(!drafts(draft(one.engine, ascending(0, 3)), 3));
  BOOST_CHECK(drafts(draft(one.engine, ascending(100, 3)), 103));
  BOOST_CHECK_EQUAL(one.state().frozen_tokens, 0U);
  BOOST_CHECK_EQUAL(one.state().oldest, 8);
  BOOST_CHECK(one.freeze().labels == std::vector<std::string>{"new"});
}

BOOST_AUTO_TEST_CASE(an_empty_history_has_nothing_to_freeze) {
  OneNamespace one;
  BOOST_CHECK(!one.engine.freeze_history(own()));
  BOOST_CHECK(!one.engine.freeze_history(of_team()));
  BOOST_CHECK_THROW(one.engine.freeze_history({1, ""}), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(what_waited_when_the_head_was_frozen_is_drained_of_the_frozen_one) {
  OneNamespace one;
  one.share(ascending(0, 3), "old");
  const HistoryDocuments frozen = one.freeze();
  one.share(ascending(5, 3), "new");
  const auto drained = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 2U);
  BOOST_CHECK_EQUAL(drained[0].generation, frozen.generation);
  BOOST_CHECK((drained[0].labels == std::vector<std::string>{"old"}));
  BOOST_CHECK_EQUAL(drained[1].generation, frozen.generation + 1);
  BOOST_CHECK((drained[1].labels == std::vector<std::string>{"new"}));
}

BOOST_AUTO_TEST_CASE(a_document_under_way_is_cut_when_its_head_is_frozen) {
  OneNamespace one;
  one.writer.open(1, {}, {}, "cut");
  one.writer.step(1, 0, ascending(0, 100), 0);
  one.writer.close(1, 5);
  one.engine.index_slice(60);
  const HistoryDocuments frozen = one.freeze();
  one.engine.index_slice(60);
  BOOST_CHECK(frozen.tokens == ascending(0, 60));
  const auto drained = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 2U);
  BOOST_CHECK(drained[0].tokens == ascending(0, 60));
  BOOST_CHECK(drained[1].tokens == ascending(60, 40));
  for (const HistoryDocuments& part : drained) {
    BOOST_CHECK((part.labels == std::vector<std::string>{"cut"}));
    BOOST_CHECK((part.times == std::vector<std::int64_t>{5}));
  }
}

BOOST_AUTO_TEST_CASE(a_cursor_into_a_head_that_was_frozen_or_dropped_equals_a_fresh_match) {
  OneNamespace one;
  Verifier reader(one.engine, 2);
  std::vector<Token> text{0, 1};
  reader.open(1, text, sharing_nothing());
  for (Token round = 0; round < 40; ++round) {
    one.share(ascending(round, 50), "round");
    if (round % 3 == 1) one.freeze();
    if (round % 3 == 2) one.engine.publish_history(own(), {}, true, 0.0);
    const Tail kept = reader.step(1, static_cast<std::uint32_t>(text.size()), std::vector<Token>{round + 2}, 16);
    text.push_back(round + 2);
    Verifier fresh(one.engine, 3);
    fresh.open(1, text, sharing_nothing());
    BOOST_REQUIRE(kept == fresh.step(1, static_cast<std::uint32_t>(text.size()), {}, 16));
  }
}

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
    one.share(ascending(10'000 * document, 2000), "request");
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
  BOOST_CHECK_GE(one.engine.statistics().forgotten_tokens, 3 * 2000U);
}

BOOST_AUTO_TEST_CASE(forgotten_requests_leave_nothing_behind) {
  OneNamespace one;
  const auto forget = [&](std::uint32_t name_space) {
    return one.engine.forget_requests(std::vector{name_space}, std::nullopt, {"secret"});
  };
  one.writer.open(1, {}, {}, "secret");
  one.writer.step(1, 0, ascending(0, 10), 0);
  BOOST_CHECK_EQUAL(forget(1), 0U);
  BOOST_CHECK_EQUAL(forget(0), 1U);
  BOOST_CHECK_EQUAL(forget(0), 0U);
  one.writer.close(1);
  one.writer.share(1, ascending(100, 10), {}, "secret");  // closed, not yet shared
  BOOST_CHECK_EQUAL(forget(0), 1U);
  one.share(ascending(200, 10), "open");
  const auto drained = one.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 1U);
  BOOST_CHECK((drained[0].labels == std::vector<std::string>{"open"}));
}

BOOST_AUTO_TEST_CASE(a_request_that_is_sent_again_stays_forgotten) {
  OneNamespace one;
  one.writer.open(1, {}, {}, "secret");
  one.engine.forget_requests(std::vector<std::uint32_t>{0}, std::nullopt, {"secret"});
  one.writer.share(1, ascending(0, 10), {}, "secret");  // opens the same request anew
  one.engine.index_slice(kAtOnce);
  BOOST_CHECK(one.engine.drain_history().empty());
  one.share(ascending(0, 10), "secret");  // another request
  BOOST_CHECK_EQUAL(one.engine.drain_history().size(), 1U);
}

BOOST_AUTO_TEST_CASE(of_a_forgotten_request_half_shared_the_half_is_a_document_to_be_deleted) {
  OneNamespace one;
  one.writer.share(1, ascending(0, 100), {}, "secret");
  one.engine.index_slice(60);
  one.engine.forget_requests(std::vector<std::uint32_t>{0}, std::nullopt, {"secret"});
  one.share(ascending(500, 10), "open");
  const HistoryDocuments frozen = one.freeze();
  BOOST_CHECK((frozen.labels == std::vector<std::string>{"secret", "open"}));
  BOOST_CHECK((frozen.document_end == std::vector<std::int64_t>{60, 70}));
}

BOOST_AUTO_TEST_CASE(what_is_restored_is_drafted_from_and_not_drained_again) {
  OneNamespace before;
  before.share(ascending(0, 10), "first", 5);
  before.share(ascending(100, 10), "second", 6);
  HistoryDocuments kept = before.engine.drain_history()[0];
  kept.generation = 7;

  OneNamespace after;
  after.engine.restore_history(kept, 0.0);
  BOOST_CHECK_EQUAL(after.state().generation, 7U);
  BOOST_CHECK(after.engine.drain_history().empty());
  BOOST_CHECK(drafts(draft(after.engine, ascending(100, 3)), 103));
  kept.generation = 8;
  kept.history.group = "team";
  after.engine.restore_history(kept, 0.0);
  BOOST_CHECK_EQUAL(after.state(of_team()).head_tokens, 20U);

  after.share(ascending(200, 10), "third", 7);
  BOOST_CHECK_THROW(after.engine.restore_history({own(), 7, {1}, {1}, {""}, {0}}, 0.0), std::logic_error);
  const HistoryDocuments frozen = after.freeze();
  BOOST_CHECK_EQUAL(frozen.generation, 7U);
  BOOST_CHECK((frozen.labels == std::vector<std::string>{"first", "second", "third"}));
  BOOST_CHECK((frozen.times == std::vector<std::int64_t>{5, 6, 7}));
  const auto drained = after.engine.drain_history();
  BOOST_REQUIRE_EQUAL(drained.size(), 1U);
  BOOST_CHECK((drained[0].labels == std::vector<std::string>{"third"}));
}

BOOST_AUTO_TEST_CASE(a_generation_restored_over_two_heads_is_that_of_the_newer) {
  EngineLimits limits = kAmple;
  limits.history = 1 << 18;
  OneNamespace one(limits);
  HistoryDocuments kept{own(), 3, {}, {}, {}, {}};
  for (Token document = 0; document < 60; ++document) {
    for (const Token token : ascending(1000 * document, 100)) kept.tokens.push_back(token);
    kept.document_end.push_back(static_cast<std::int64_t>(kept.tokens.size()));
    kept.labels.emplace_back("request");
    kept.times.push_back(0);
  }
  one.engine.restore_history(kept, 0.0);
  BOOST_CHECK_EQUAL(one.state().generation, 3U);
  BOOST_CHECK_GT(one.state().frozen_tokens, 0U);
  BOOST_CHECK_LT(one.freeze().generation, 3U);
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

BOOST_AUTO_TEST_CASE(draining_sealing_and_deleting_may_run_beside_steps_and_indexing) {
  constexpr int kWriters = 2;
  constexpr int kRequests = 150;
  EngineLimits limits = kAmple;
  limits.history = std::size_t{1} << 26;
  Engine engine(limits, true);
  engine.create_namespace();
  std::atomic<int> writing = kWriters;
  std::map<std::string, std::size_t> drained;  // tokens by label
  const auto write = [&](std::uint64_t incarnation) {
    Verifier verifier(engine, incarnation);
    for (int request = 0; request < kRequests; ++request) {
      const std::string label = std::to_string(incarnation) + "/" + std::to_string(request);
      const auto options = request % 3 == 0 ? sharing_with("team") : RequestOptions();
      verifier.open(1, ascending(0, 3), options, label);
      verifier.step(1, 3, ascending(3, 400), 8);
      verifier.step(1, 403, ascending(403, 1), 8);
      verifier.close(1);
    }
    --writing;
  };
  const auto keep = [&] {
    while (writing > 0) {
      drain(engine, drained);
      for (const HistoryState& state : engine.histories()) {
        if (const auto frozen = engine.freeze_history(state.history)) {
          drain(engine, drained);  // what came in between is of the frozen head
          engine.publish_history(state.history, {sealed(texts_of(*frozen))}, true, 0.0);
        }
      }
      engine.forget_requests(std::vector<std::uint32_t>{0}, std::nullopt, {"nobody's"});
      engine.statistics();
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t incarnation = 1; incarnation <= kWriters; ++incarnation) threads.emplace_back(write, incarnation);
  std::thread keeper(keep);
  for (std::thread& thread : threads) thread.join();
  keeper.join();
  BOOST_REQUIRE(engine.wait_indexed(engine.ticket(), 60.0));
  drain(engine, drained);
  BOOST_CHECK_EQUAL(drained.size(), std::size_t{kWriters} * kRequests);
  for (const auto& [label, tokens] : drained) BOOST_CHECK_EQUAL(tokens, 401U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
