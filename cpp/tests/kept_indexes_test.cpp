#include "engine/kept_indexes.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "one_namespace.h"

namespace draftd::testing {
namespace {

OwnIndex index_of(std::span<const Token> text) {
  OwnIndex own;
  own.index.append(text);
  return own;
}

std::size_t length_of(const std::optional<OwnIndex>& index) { return index ? index->text().size() : 0; }

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_indexes_test)

BOOST_AUTO_TEST_CASE(the_longest_text_that_a_request_begins_with_is_taken_once) {
  KeptIndexes kept(1 << 20);
  Freed freed;
  const std::vector<Token> text = ascending(0, 100);
  for (const std::size_t length : {40U, 60U, 20U}) kept.keep(0, index_of(std::span(text).first(length)), 0.0, freed);
  BOOST_CHECK_EQUAL(kept.tokens(), 120U);
  BOOST_CHECK_EQUAL(length_of(kept.take(0, std::span(text).first(59))), 40U);
  BOOST_CHECK_EQUAL(length_of(kept.take(0, text)), 60U);
  BOOST_CHECK_EQUAL(length_of(kept.take(0, text)), 20U);
  BOOST_CHECK_EQUAL(length_of(kept.take(0, text)), 0U);
  BOOST_CHECK_EQUAL(kept.memory_size(), 0U);
}

BOOST_AUTO_TEST_CASE(what_ends_alike_and_begins_otherwise_is_not_taken) {
  KeptIndexes kept(1 << 20);
  Freed freed;
  std::vector<Token> text = ascending(0, 100);
  kept.keep(0, index_of(text), 0.0, freed);
  text[0] = 7;
  BOOST_CHECK(!kept.take(0, text));
}

BOOST_AUTO_TEST_CASE(another_namespace_takes_nothing) {
  KeptIndexes kept(1 << 20);
  Freed freed;
  kept.keep(0, index_of(ascending(0, 50)), 0.0, freed);
  BOOST_CHECK(!kept.take(1, ascending(0, 50)));
  kept.forget(1, freed);
  BOOST_CHECK_EQUAL(kept.tokens(), 50U);
  kept.forget(0, freed);
  BOOST_CHECK(!kept.take(0, ascending(0, 50)));
}

BOOST_AUTO_TEST_CASE(the_oldest_go_to_keep_the_limits) {
  const std::size_t bytes = index_of(ascending(0, 1000)).memory_size();
  KeptIndexes kept(3 * bytes);
  Freed freed;
  for (Token first = 0; first < 10'000; first += 1000) {
    kept.keep(0, index_of(ascending(first, 1000)), 0.0, freed);
    BOOST_REQUIRE_LE(kept.memory_size(), 3 * bytes);
  }
  BOOST_CHECK(!kept.take(0, ascending(6000, 1000)));
  BOOST_CHECK(kept.take(0, ascending(9000, 1000)));

  KeptIndexes many(std::size_t{1} << 40);
  const auto most = static_cast<Token>(KeptIndexes::kMost);
  for (Token only = 0; only <= most; ++only) many.keep(0, index_of(std::vector<Token>{only}), 0.0, freed);
  BOOST_CHECK_EQUAL(many.tokens(), KeptIndexes::kMost);
  BOOST_CHECK(!many.take(0, std::vector<Token>{0}));
  BOOST_CHECK(many.take(0, std::vector<Token>{1}));
}

BOOST_AUTO_TEST_CASE(a_namespace_that_keeps_more_pushes_out_none_that_keeps_less) {
  const std::vector<Token> turn = ascending(0, 1000);
  const std::size_t bytes = index_of(turn).memory_size();
  Freed freed;
  KeptIndexes many(std::size_t{1} << 40);
  many.keep(0, index_of(turn), 0.0, freed);
  const auto more = static_cast<Token>(2 * KeptIndexes::kMost);
  for (Token only = 0; only < more; ++only) many.keep(1, index_of(std::vector<Token>{only}), 0.0, freed);
  BOOST_CHECK_EQUAL(freed.size(), KeptIndexes::kMost + 1);
  BOOST_CHECK(many.take(1, std::vector<Token>{more - 1}));
  BOOST_CHECK(many.take(0, turn));

  KeptIndexes large(4 * bytes);
  large.keep(0, index_of(turn), 0.0, freed);
  for (Token first = 0; first < 10'000; first += 1000) large.keep(1, index_of(ascending(first, 1000)), 0.0, freed);
  BOOST_CHECK_LE(large.memory_size(), 4 * bytes);
  BOOST_CHECK(large.take(1, ascending(9000, 1000)));
  BOOST_CHECK(large.take(0, turn));
}

BOOST_AUTO_TEST_CASE(what_is_gone_counts_for_no_namespace) {
  const std::size_t bytes = index_of(ascending(0, 1000)).memory_size();
  KeptIndexes kept(3 * bytes);
  Freed freed;
  for (const Token first : {0, 1000}) kept.keep(0, index_of(ascending(first, 1000)), 0.0, freed);
  BOOST_REQUIRE(kept.take(0, ascending(0, 1000)));
  kept.expire(1.0, freed);
  kept.keep(0, index_of(ascending(0, 1000)), 1.0, freed);
  kept.forget(0, freed);
  BOOST_REQUIRE(!kept.drop_oldest(freed));
  kept.keep(0, index_of(ascending(0, 1000)), 1.0, freed);
  for (const Token first : {1000, 2000, 3000}) kept.keep(1, index_of(ascending(first, 1000)), 1.0, freed);
  BOOST_CHECK(kept.take(0, ascending(0, 1000)));
}

BOOST_AUTO_TEST_CASE(one_that_is_larger_than_the_limit_is_not_kept) {
  KeptIndexes kept(100);
  Freed freed;
  kept.keep(0, index_of(ascending(0, 1000)), 0.0, freed);
  BOOST_CHECK_EQUAL(kept.tokens(), 0U);
  BOOST_CHECK_EQUAL(freed.size(), 1U);
}

BOOST_AUTO_TEST_CASE(they_expire_with_the_sessions) {
  OneNamespace home;
  home.writer.open(1, ascending(0, 100));
  home.engine.index_slice(SIZE_MAX);
  home.writer.close(1);
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.tokens, 100U);
  home.engine.expire(kAmple.session_ttl);
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.tokens, 100U);
  home.engine.expire(kAmple.session_ttl + 1);
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.tokens, 0U);
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.bytes, 0U);
}

BOOST_AUTO_TEST_CASE(a_deletion_in_a_namespace_drops_all_it_kept) {
  OneNamespace home;
  home.writer.open(1, ascending(0, 100), sharing_nothing(), "a");
  home.writer.close(1);
  const std::vector<std::uint32_t> name_spaces{0};
  home.engine.forget_requests(name_spaces, "team", {});
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.tokens, 0U);
  home.writer.open(1, ascending(0, 100));
  BOOST_CHECK_EQUAL(home.engine.statistics().taken_over_tokens, 0U);
}

BOOST_AUTO_TEST_CASE(a_request_that_leaves_nothing_behind_leaves_no_index) {
  OneNamespace home;
  home.writer.open(1, ascending(0, 100), {}, "a");
  const std::vector<std::uint32_t> name_spaces{0};
  home.engine.forget_requests(name_spaces, std::nullopt, {"a"});
  home.writer.close(1);
  BOOST_CHECK_EQUAL(home.engine.statistics().kept.tokens, 0U);
}

BOOST_AUTO_TEST_CASE(they_go_before_anything_in_use) {
  EngineLimits limits = kAmple;
  limits.memory = limits.history = 8 << 20;
  OneNamespace home(limits);
  home.writer.open(1, ascending(0, 20'000));
  home.engine.index_slice(SIZE_MAX);
  home.writer.close(1);
  home.engine.index_slice(SIZE_MAX);
  BOOST_REQUIRE_EQUAL(home.engine.statistics().kept.tokens, 20'000U);
  // Younger than what is kept, and all of them used: none is evicted while something is kept.
  std::uint32_t request = 1;
  for (; home.engine.statistics().kept.tokens > 0; ++request) {
    BOOST_REQUIRE_LT(request, 20U);
    home.writer.open(request, ascending(100'000 + 20'000 * static_cast<Token>(request), 20'000));
    home.engine.index_slice(SIZE_MAX);
    const EngineStatistics figures = home.engine.statistics();
    BOOST_REQUIRE_LE(figures.own.bytes + figures.kept.bytes, limits.memory);
  }
  BOOST_CHECK_EQUAL(home.engine.statistics().evicted_sessions, 0U);
  BOOST_CHECK_EQUAL(home.engine.statistics().sessions, request - 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
