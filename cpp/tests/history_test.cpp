#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "one_namespace.h"
#include "sealed.h"

namespace draftd::testing {
namespace {

// What a request with this prompt is drafted.
Tail draft(Engine& engine, std::span<const Token> prompt, const RequestOptions& options = sharing_nothing()) {
  Verifier reader(engine, 99);
  reader.open(1, prompt, options);
  return reader.step(1, static_cast<std::uint32_t>(prompt.size()), {}, 8);
}

// Adds up what is drained, in tokens by label.
void drain(Engine& engine, std::map<std::string, std::size_t>& tokens) {
  for (const HistoryDocuments& documents : engine.drain_history()) {
    const auto texts = texts_of(documents);
    for (std::size_t i = 0; i < texts.size(); ++i) tokens[documents.labels[i]] += texts[i].size();
  }
}

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

BOOST_AUTO_TEST_CASE(forgotten_requests_leave_nothing_behind) {
  OneNamespace one;
  const auto forget = [&](std::uint32_t name_space) {
    return one.engine.forget_requests(std::vector{name_space}, std::nullopt, {"secret"});
  };
  one.writer.open(1, {}, {}, "secret");
  one.writer.step(1, 0, ascending(0, 10), 0);
  BOOST_CHECK(forget(1).empty());
  for (int asked = 0; asked < 2; ++asked) BOOST_CHECK(forget(0).contains("secret"));
  one.writer.close(1);
  one.writer.share(1, ascending(100, 10), {}, "secret");  // closed, not yet shared
  BOOST_CHECK(forget(0).contains("secret"));
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
