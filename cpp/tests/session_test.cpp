#include "draftd/session.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <utility>
#include <vector>

#include "brute_force.h"

namespace draftd::testing {
namespace {

constexpr Verified kNoTailUsed{};

Session session_of(std::vector<Token> prompt, RequestOptions options = {}) {
  return {1, std::move(options), prompt, {}};
}

RequestOptions stopping_at(std::vector<Token> stop_ids) {
  RequestOptions options;
  options.stop_ids = std::move(stop_ids);
  return options;
}

Verified used(std::uint32_t tail_base, std::int32_t nodes = Verified::kAll, std::span<const std::uint8_t> bitmap = {}) {
  return {tail_base, nodes, bitmap};
}

std::vector<Token> text_of(const Session& session) { return {session.text().begin(), session.text().end()}; }

std::vector<Token> tokens(std::initializer_list<Token> list) { return list; }

void check_own_index_is_that_of_a_fresh_request(Session& session) {
  session.index_text(SIZE_MAX);
  Session fresh(1, {}, session.text(), {});
  fresh.index_text(SIZE_MAX);
  BOOST_CHECK(levels(session.own_index(), session.own_cursor()) == levels(fresh.own_index(), fresh.own_cursor()));
  session.own_index().check_integrity();
}

// A chain of three nodes: 2, 3, 4.
void deliver_chain(Session& session, Lesson lesson = {}) {
  const std::vector<DraftNode> chain{
      {2, -1, Source::kOwnText, 0.5F}, {3, 0, Source::kOwnText, 0.25F}, {4, 1, Source::kOwnText, 0.125F}};
  session.deliver(chain, lesson);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(session_test)

BOOST_AUTO_TEST_CASE(a_repeated_commit_changes_nothing) {
  Session session = session_of({1, 2, 3});
  BOOST_CHECK(session.commit(3, tokens({4, 5}), kNoTailUsed).status == Status::kOk);
  BOOST_CHECK(session.commit(3, tokens({4, 5}), kNoTailUsed).status == Status::kOk);
  BOOST_CHECK(session.commit(2, tokens({3, 4}), kNoTailUsed).status == Status::kOk);
  BOOST_CHECK(text_of(session) == tokens({1, 2, 3, 4, 5}));
}

BOOST_AUTO_TEST_CASE(a_gap_needs_a_sync_and_changes_nothing) {
  Session session = session_of({1, 2, 3});
  BOOST_CHECK(session.commit(4, tokens({9}), kNoTailUsed).status == Status::kNeedSync);
  BOOST_CHECK(session.commit(UINT32_MAX, tokens({9}), kNoTailUsed).status == Status::kNeedSync);
  BOOST_CHECK(text_of(session) == tokens({1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(a_disagreement_in_the_output_cuts_the_mirror) {
  Session session = session_of({1, 2, 3});
  session.commit(3, tokens({1, 2, 9, 9}), kNoTailUsed);
  session.index_text(SIZE_MAX);
  BOOST_CHECK(session.commit(4, tokens({2, 3, 1}), kNoTailUsed).status == Status::kOk);
  BOOST_CHECK(text_of(session) == tokens({1, 2, 3, 1, 2, 3, 1}));
  check_own_index_is_that_of_a_fresh_request(session);
}

BOOST_AUTO_TEST_CASE(a_cut_behind_what_is_indexed_keeps_the_index) {
  Session session = session_of({1, 2, 3});
  session.index_text(2);
  session.commit(3, tokens({4, 5}), kNoTailUsed);
  session.commit(4, tokens({6}), kNoTailUsed);
  BOOST_CHECK_EQUAL(session.unindexed(), 3U);
  check_own_index_is_that_of_a_fresh_request(session);
}

BOOST_AUTO_TEST_CASE(a_disagreement_in_the_prompt_needs_a_sync) {
  Session session = session_of({1, 2, 3});
  BOOST_CHECK(session.commit(1, tokens({2, 9}), kNoTailUsed).status == Status::kNeedSync);
  BOOST_CHECK(session.commit(1, tokens({2, 3, 4}), kNoTailUsed).status == Status::kOk);
  BOOST_CHECK(text_of(session) == tokens({1, 2, 3, 4}));
}

BOOST_AUTO_TEST_CASE(an_invalid_id_is_named_by_its_position_and_nothing_is_taken) {
  RequestOptions options;
  options.vocabulary = 100;
  Session session = session_of({1, 2, 3}, options);
  for (const Token invalid : {100, -1, INT32_MAX, INT32_MIN}) {
    const Session::Commit commit = session.commit(3, tokens({4, invalid}), kNoTailUsed);
    BOOST_CHECK(commit.status == Status::kInvalidToken);
    BOOST_CHECK_EQUAL(commit.position, 1U);
  }
  BOOST_CHECK_EQUAL(session.committed(), 3U);
  BOOST_CHECK(session.commit(3, tokens({99}), kNoTailUsed).status == Status::kOk);
}

BOOST_AUTO_TEST_CASE(nothing_after_a_stop_is_text) {
  Session session = session_of({1, 9, 3}, stopping_at({9}));
  BOOST_CHECK(!session.stopped());
  session.commit(3, tokens({4, 5, 9, 6, 7}), kNoTailUsed);
  BOOST_CHECK(session.stopped());
  BOOST_CHECK(text_of(session) == tokens({1, 9, 3, 4, 5, 9}));
  BOOST_CHECK_EQUAL(session.committed(), 8U);
  BOOST_CHECK_EQUAL(session.output().size(), 3U);
  BOOST_CHECK_EQUAL(session.index_text(SIZE_MAX), 0U);
  BOOST_CHECK_EQUAL(session.own_index().tokens(), 6U);
}

BOOST_AUTO_TEST_CASE(a_cut_at_the_stop_revives_and_one_behind_it_does_not) {
  Session session = session_of({1}, stopping_at({9}));
  session.commit(1, tokens({2, 9, 7, 8}), kNoTailUsed);
  session.commit(3, tokens({6}), kNoTailUsed);
  BOOST_CHECK(session.stopped());
  session.commit(2, tokens({3}), kNoTailUsed);
  BOOST_CHECK(!session.stopped());
  BOOST_CHECK(text_of(session) == tokens({1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(the_allowance_says_why_there_is_none) {
  RequestOptions options = stopping_at({9});
  options.max_new_tokens = 4;
  options.max_nodes = 2;
  Session session = session_of({1, 2, 3}, options);
  BOOST_CHECK(session.allowance(0).reason == Reason::kNotAsked);
  BOOST_CHECK_EQUAL(session.allowance(16).nodes, 2U);
  session.commit(3, tokens({4, 5}), kNoTailUsed);
  BOOST_CHECK_EQUAL(session.allowance(16).nodes, 1U);
  session.commit(5, tokens({6}), kNoTailUsed);
  BOOST_CHECK(session.allowance(16).reason == Reason::kLengthLimit);
  session.commit(6, tokens({9}), kNoTailUsed);
  BOOST_CHECK(session.allowance(16).reason == Reason::kStopped);
}

BOOST_AUTO_TEST_CASE(a_limit_of_no_new_tokens_allows_no_node) {
  RequestOptions options;
  options.max_new_tokens = 0;
  BOOST_CHECK(session_of({1}, options).allowance(16).reason == Reason::kLengthLimit);
}

BOOST_AUTO_TEST_CASE(acceptance_counts_verified_nodes_only) {
  Session session = session_of({1});
  deliver_chain(session);
  session.commit(1, tokens({2, 7}), used(1, 1));
  BOOST_CHECK_EQUAL(session.acceptance().drafts, 1U);
  BOOST_CHECK(session.acceptance().verified == std::vector<std::uint64_t>({1}));
  BOOST_CHECK(session.acceptance().accepted == std::vector<std::uint64_t>({1}));
}

BOOST_AUTO_TEST_CASE(acceptance_follows_the_bitmap) {
  Session session = session_of({1});
  deliver_chain(session);
  const std::vector<std::uint8_t> all_but_the_second{1, 0, 1};
  session.commit(1, tokens({2, 3, 4}), used(1, Verified::kBitmap, all_but_the_second));
  BOOST_CHECK(session.acceptance().verified == std::vector<std::uint64_t>({1, 0, 1}));
  BOOST_CHECK(session.acceptance().accepted == std::vector<std::uint64_t>({1}));
}

BOOST_AUTO_TEST_CASE(acceptance_ends_at_the_stop) {
  Session session = session_of({1}, stopping_at({3}));
  deliver_chain(session);
  session.commit(1, tokens({2, 3, 4}), used(1));
  BOOST_CHECK(session.acceptance().accepted == std::vector<std::uint64_t>({1, 1}));
}

BOOST_AUTO_TEST_CASE(a_tail_is_counted_once_and_only_at_its_place) {
  Session session = session_of({1});
  deliver_chain(session);
  BOOST_CHECK(session.commit(1, tokens({2}), used(7)).stale_tail);
  deliver_chain(session);
  BOOST_CHECK(!session.commit(2, tokens({2}), used(2)).stale_tail);
  BOOST_CHECK(!session.commit(2, tokens({2}), used(2)).stale_tail);  // a repeat tells nothing
  BOOST_CHECK(session.commit(3, tokens({2}), used(2)).stale_tail);
  BOOST_CHECK_EQUAL(session.acceptance().drafts, 1U);
  BOOST_CHECK_EQUAL(session.acceptance().steps, 2U);  // the first token of the output comes from prefill
}

BOOST_AUTO_TEST_CASE(what_an_engine_ahead_verified_of_the_tail_before_is_counted_from_where_the_text_led) {
  Session session = session_of({1});
  deliver_chain(session);
  session.commit(1, tokens({2}), kNoTailUsed);
  deliver_chain(session);
  const Session::Commit commit = session.commit(2, tokens({3, 9}), used(1));
  BOOST_CHECK_EQUAL(commit.accepted, 2);  // of the tail, from its beginning
  BOOST_CHECK(!commit.stale_tail);
  BOOST_CHECK_EQUAL(session.acceptance().drafts, 1U);
  BOOST_CHECK(session.acceptance().verified == std::vector<std::uint64_t>({1, 1}));
  BOOST_CHECK(session.acceptance().accepted == std::vector<std::uint64_t>({1}));
}

BOOST_AUTO_TEST_CASE(of_the_tail_before_nothing_is_counted_that_the_text_left_or_used_up) {
  for (const auto& [since, accepted] : {std::pair{tokens({9}), 0}, {tokens({2, 9}), 1}, {tokens({2, 3, 4}), 3}}) {
    Session session = session_of({1});
    deliver_chain(session);
    session.commit(1, since, kNoTailUsed);
    deliver_chain(session);
    const Session::Commit commit = session.commit(session.committed(), tokens({2}), used(1));
    BOOST_CHECK_EQUAL(commit.accepted, accepted);
    BOOST_CHECK(!commit.stale_tail);
    BOOST_CHECK_EQUAL(session.acceptance().drafts, 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_tail_behind_which_text_was_taken_back_is_stale) {
  Session session = session_of({1});
  deliver_chain(session);
  session.commit(1, tokens({2, 7}), kNoTailUsed);
  deliver_chain(session);
  session.commit(2, tokens({3}), kNoTailUsed);
  deliver_chain(session);
  BOOST_CHECK(session.commit(3, tokens({4}), used(1)).stale_tail);
}

BOOST_AUTO_TEST_CASE(survival_of_the_tail_before_is_judged_given_the_tokens_in_between) {
  for (const double impossible : {0.0, 0.5}) {
    Session session = session_of({1});
    Lesson lesson;
    lesson.raw = {impossible, impossible / 2, impossible / 4};
    deliver_chain(session, lesson);
    session.commit(1, tokens({2}), kNoTailUsed);
    deliver_chain(session);
    BOOST_CHECK(session.commit(2, tokens({3, 9}), used(1)).lesson);
    const std::vector<Outcome::Judged>& judged = session.outcome().judged;
    BOOST_REQUIRE_EQUAL(judged.size(), 2U);
    BOOST_CHECK_EQUAL(judged[0].raw, impossible > 0 ? 0.5 : 0.0);
    BOOST_CHECK_EQUAL(judged[1].raw, impossible > 0 ? 0.25 : 0.0);
    BOOST_CHECK(judged[0].accepted);
    BOOST_CHECK(!judged[1].accepted);
  }
}

BOOST_AUTO_TEST_CASE(a_bitmap_shorter_or_longer_than_the_tail_is_no_trouble) {
  Session session = session_of({1});
  deliver_chain(session);
  session.commit(1, tokens({2}), used(1, Verified::kBitmap));
  deliver_chain(session);
  const std::vector<std::uint8_t> many(100, 1);
  session.commit(2, tokens({2}), used(2, Verified::kBitmap, many));
  deliver_chain(session);
  session.commit(3, tokens({2}), used(3, INT32_MAX));
  BOOST_CHECK(session.acceptance().verified == std::vector<std::uint64_t>({2, 2, 2}));
}

BOOST_AUTO_TEST_CASE(a_cursor_in_another_index_follows_the_text_and_the_index) {
  Index history;
  history.append(tokens({5, 1, 2, 3}));
  history.end_document();
  Session session = session_of({1});
  BOOST_CHECK(session.cursor_in(history) == history.match(session.text()));
  session.commit(1, tokens({2}), kNoTailUsed);
  BOOST_CHECK(session.cursor_in(history) == history.match(session.text()));
  history.append(tokens({8, 1, 2}));
  BOOST_CHECK(session.cursor_in(history) == history.match(session.text()));
  session.commit(1, tokens({3}), kNoTailUsed);
  BOOST_CHECK(session.cursor_in(history) == history.match(session.text()));
}

// Whether a request rests in each of so many steps, all of whose drafts are rejected.
std::vector<bool> rests_of(Session& session, const PaceRules& rules, std::size_t steps) {
  std::vector<bool> rests;
  while (rests.size() < steps) {
    rests.push_back(session.paced_allowance(8, 64, rules).reason == Reason::kResting);
    const std::uint32_t base = session.committed();
    if (!rests.back()) deliver_chain(session);
    BOOST_REQUIRE(session.commit(base, tokens({9}), rests.back() ? kNoTailUsed : used(base)).status == Status::kOk);
  }
  return rests;
}

BOOST_AUTO_TEST_CASE(a_request_rests_after_rejected_drafts_and_longer_after_each_failed_try) {
  const PaceRules rules{{2, 1}, 0, 1.0};
  Session session = session_of({1, 2, 3});
  const std::vector<bool> expected{false, false, true, false, true, true, false, true, true, true, true, false};
  BOOST_CHECK(rests_of(session, rules, expected.size()) == expected);

  // An accepted node: all as at the beginning.
  Session lucky = session_of({1, 2, 3});
  rests_of(lucky, rules, 4);
  deliver_chain(lucky);
  const std::uint32_t base = lucky.committed();
  BOOST_CHECK_EQUAL(lucky.commit(base, tokens({2, 9}), used(base)).accepted, 1);
  BOOST_CHECK(rests_of(lucky, rules, 4) == (std::vector<bool>{false, false, true, false}));
}

BOOST_AUTO_TEST_CASE(a_rest_is_at_most_sixteen_times_as_long) {
  Session session = session_of({1, 2, 3});
  const std::vector<bool> rests = rests_of(session, {{1, 1}, 0, 1.0}, 200);
  std::size_t longest = 0;
  std::size_t length = 0;
  for (const bool rest : rests) longest = std::max(longest, length = rest ? length + 1 : 0);
  BOOST_CHECK_EQUAL(longest, 16);
}

BOOST_AUTO_TEST_CASE(drafts_that_were_not_verified_say_nothing_of_a_request) {
  const PaceRules rules{{1, 5}, 0, 1.0};
  Session session = session_of({1, 2, 3});
  deliver_chain(session);
  BOOST_CHECK_EQUAL(session.commit(3, tokens({9}), used(3, 0)).accepted, 0);
  BOOST_CHECK(session.paced_allowance(8, 64, rules).reason == Reason::kNotEmpty);
  deliver_chain(session);
  BOOST_CHECK_EQUAL(session.commit(4, tokens({9}), kNoTailUsed).accepted, Session::kNoOutcome);
  BOOST_CHECK(session.paced_allowance(8, 64, rules).reason == Reason::kNotEmpty);
}

BOOST_AUTO_TEST_CASE(a_request_whose_drafts_fail_one_step_late_rests) {
  const PaceRules rules{{1, 5}, 0, 1.0};
  Session session = session_of({1});
  deliver_chain(session);
  session.commit(1, tokens({2}), kNoTailUsed);
  deliver_chain(session);
  BOOST_CHECK(session.paced_allowance(8, 64, rules).reason == Reason::kNotEmpty);
  session.commit(2, tokens({9}), used(1));
  BOOST_CHECK(session.paced_allowance(8, 64, rules).reason == Reason::kResting);
}

BOOST_AUTO_TEST_CASE(a_long_run_may_have_more_than_the_step_gives_each_but_no_more_than_it_allows_itself) {
  const PaceRules rules{{}, 4, 2.0};
  RequestOptions options;
  options.max_nodes = 5;
  Session limited = session_of({1}, options);
  Session free = session_of({1});
  for (Session* const session : {&limited, &free}) {
    session->commit(1, tokens({5, 5, 5, 5}), kNoTailUsed);
    BOOST_CHECK_EQUAL(session->paced_allowance(64, 3, rules).nodes, 3);
    session->commit(5, tokens({5}), kNoTailUsed);
    BOOST_CHECK_EQUAL(session->paced_allowance(64, 2, rules).nodes, 4);
    BOOST_CHECK_EQUAL(session->paced_allowance(3, 2, rules).nodes, 3);
    BOOST_CHECK(session->paced_allowance(64, 0, rules).reason == Reason::kNotAsked);
  }
  BOOST_CHECK_EQUAL(limited.paced_allowance(64, 3, rules).nodes, 5);
  BOOST_CHECK_EQUAL(limited.paced_allowance(64, UINT32_MAX, rules).nodes, 5);
  BOOST_CHECK_EQUAL(free.paced_allowance(64, 3, rules).nodes, 6);
  BOOST_CHECK_EQUAL(free.paced_allowance(64, UINT32_MAX, rules).nodes, 64);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
