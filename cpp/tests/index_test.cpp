#include "draftd/index.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "brute_force.h"

namespace draftd::testing {
namespace {

using Random = std::mt19937;

int up_to(Random& random, int greatest) { return std::uniform_int_distribution<int>(0, greatest)(random); }

// Short units repeated many times: what makes long matches and many branching states.
std::vector<Token> random_text(Random& random, int alphabet) {
  std::vector<Token> text;
  for (int piece = up_to(random, 3); piece >= 0; --piece) {
    std::vector<Token> unit(static_cast<std::size_t>(1 + up_to(random, 5)));
    for (Token& token : unit) token = up_to(random, alphabet - 1);
    for (int times = up_to(random, up_to(random, 30)); times >= 0; --times) {
      text.insert(text.end(), unit.begin(), unit.end());
    }
  }
  return text;
}

void check_levels(const Index& index, const BruteForce& twin, std::span<const Token> context) {
  const std::vector<Level> found = levels(index, index.match(context));
  const std::vector<Level> expected = twin.levels(context);
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

void check_tail(const Index& index, const BruteForce& twin) {
  const std::vector<Level> found = levels(index, index.tail());
  const std::vector<Level> expected = twin.levels(twin.open_document(), 2);
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

Index index_of(std::initializer_list<std::vector<Token>> documents) {
  Index index;
  for (const std::vector<Token>& document : documents) {
    index.append(document);
    index.end_document();
  }
  return index;
}

std::vector<Token> fibonacci_word(std::size_t length) {
  std::vector<Token> shorter{0};
  std::vector<Token> longer{0, 1};
  while (longer.size() < length) {
    std::vector<Token> next = longer;
    next.insert(next.end(), shorter.begin(), shorter.end());
    shorter = std::exchange(longer, next);
  }
  longer.resize(length);
  return longer;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(index_test)

BOOST_AUTO_TEST_CASE(equals_brute_force_for_any_operations) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Random random(seed);
      const int alphabet = 1 + up_to(random, 3);
      Index index;
      BruteForce twin;
      for (int operation = 0; operation < 8; ++operation) {
        const std::vector<Token> text = random_text(random, alphabet);
        index.append(text);
        twin.append(text);
        check_tail(index, twin);
        if (up_to(random, 3) == 0) {
          index.end_document();
          twin.end_document();
        }
        check_levels(index, twin, text);
        check_levels(index, twin, random_text(random, alphabet + 1));
        index.check_integrity();
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cursor_that_advances_equals_a_fresh_match) {
  Random random(7);
  Index index;
  for (int document = 0; document < 20; ++document) {
    index.append(random_text(random, 3));
    index.end_document();
  }
  std::vector<Token> context;
  Cursor cursor;
  for (int step = 0; step < 2000; ++step) {
    context.push_back(up_to(random, 50) == 0 ? 99 : up_to(random, 2));
    cursor = index.advance(cursor, context.back());
    const Cursor fresh = index.match(context);
    BOOST_REQUIRE_EQUAL(cursor.state, fresh.state);
    BOOST_REQUIRE_EQUAL(cursor.length, fresh.length);
  }
}

BOOST_AUTO_TEST_CASE(frequent_tokens_are_exact) {
  Random random(3);
  Index index;
  std::map<Token, std::pair<std::uint32_t, int>> seen;  // count, last time
  for (int time = 0; time < 3000; ++time) {
    const Token token = up_to(random, up_to(random, 60));
    index.append({&token, 1});
    auto& [count, last] = seen[token];
    ++count;
    last = time;
  }
  std::vector<std::pair<std::pair<std::uint32_t, int>, Token>> ranked;
  for (const auto& [token, rank] : seen) ranked.emplace_back(rank, token);
  std::sort(ranked.rbegin(), ranked.rend());

  const std::span<const FrequentToken> frequent = index.frequent_tokens();
  BOOST_REQUIRE_EQUAL(frequent.size(), Index::kFrequentTokens);
  for (std::size_t place = 0; place < frequent.size(); ++place) {
    BOOST_CHECK_EQUAL(frequent[place].token, ranked[place].second);
    BOOST_CHECK_EQUAL(frequent[place].count, ranked[place].first.first);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_index_knows_nothing) {
  Index index;
  const std::vector<Token> context{1, 2, 3};
  BOOST_CHECK(index.match(context) == Cursor{});
  BOOST_CHECK(index.match({}) == Cursor{});
  BOOST_CHECK(index.tail() == Cursor{});
  BOOST_CHECK_EQUAL(index.degree(kRoot), 0U);
  BOOST_CHECK_EQUAL(index.tokens(), 0U);
  BOOST_CHECK_EQUAL(index.documents(), 0U);
  BOOST_CHECK(index.frequent_tokens().empty());
  index.check_integrity();
}

BOOST_AUTO_TEST_CASE(nothing_appended_and_empty_documents_leave_no_trace) {
  Index index;
  index.append({});
  index.end_document();
  index.end_document();
  BOOST_CHECK_EQUAL(index.documents(), 0U);
  index.append(std::vector<Token>{1});
  BOOST_CHECK_EQUAL(index.documents(), 1U);
  index.end_document();
  index.end_document();
  BOOST_CHECK_EQUAL(index.documents(), 1U);
  BOOST_CHECK_EQUAL(index.tokens(), 1U);
  index.check_integrity();
}

BOOST_AUTO_TEST_CASE(the_greatest_id_is_a_token_like_any_other) {
  const Index index = index_of({{INT32_MAX, 0, INT32_MAX, 0}});
  const std::vector<Token> context{INT32_MAX};
  const Cursor cursor = index.match(context);
  BOOST_CHECK_EQUAL(cursor.length, 1U);
  std::vector<Continuation> followers(index.degree(cursor.state));
  index.continuations(cursor.state, followers);
  BOOST_REQUIRE_EQUAL(followers.size(), 1U);
  BOOST_CHECK_EQUAL(followers[0].token, 0);
}

BOOST_AUTO_TEST_CASE(many_followers_are_all_found) {
  Index index;
  for (Token token = 0; token < 5000; ++token) index.append(std::vector<Token>{7'000'000, token * 1024});
  const std::vector<Token> context{7'000'000};
  const Cursor cursor = index.match(context);
  BOOST_CHECK_EQUAL(index.degree(cursor.state), 5000U);
  for (Token token = 0; token < 5000; ++token) {
    BOOST_REQUIRE_EQUAL(index.advance(cursor, token * 1024).length, 2U);
  }
  BOOST_CHECK_EQUAL(index.advance(cursor, 1).length, 0U);
  index.check_integrity();
}

BOOST_AUTO_TEST_CASE(a_moved_index_is_the_same_index) {
  Index index = index_of({{1, 2, 3}});
  const Index moved = std::move(index);
  const std::vector<Token> context{1, 2};
  BOOST_CHECK_EQUAL(moved.match(context).length, 2U);
  moved.check_integrity();
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_the_text_whatever_the_text) {
  constexpr std::size_t kTokens = 50'000;
  constexpr std::size_t kMostBytesPerToken = 80;  // binary text branches everywhere; real text needs less than 40
  Random random(1);
  std::vector<Token> binary(kTokens);
  for (Token& token : binary) token = up_to(random, 1);
  std::vector<Token> alternating(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) alternating[i] = static_cast<Token>(i % 2);
  std::vector<Token> distinct(kTokens);
  std::iota(distinct.begin(), distinct.end(), 0);
  const std::vector<std::pair<std::string, std::vector<Token>>> texts{
      {"aaaa", std::vector<Token>(kTokens, 5)},
      {"abab", alternating},
      {"fibonacci", fibonacci_word(kTokens)},
      {"random binary", binary},
      {"distinct", distinct},
  };
  for (const auto& [name, text] : texts) {
    BOOST_TEST_CONTEXT(name) {
      Index index;
      index.append(text);
      BOOST_CHECK_LE(index.states(), 2 * kTokens + 2);
      BOOST_CHECK_LE(index.edges(), 3 * kTokens);
      BOOST_CHECK_LE(index.memory_size(), kMostBytesPerToken * kTokens);
      index.check_integrity();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
