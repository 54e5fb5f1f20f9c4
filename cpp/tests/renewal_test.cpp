#include "automaton/renewal.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "draftd/index.h"

namespace draftd::testing {
namespace {

using Random = std::mt19937;

std::vector<Token> random_text(Random& random, std::size_t length, Token alphabet) {
  std::vector<Token> text(length);
  for (Token& token : text) token = std::uniform_int_distribution<Token>(0, alphabet - 1)(random);
  return text;
}

void check_renewed(const Index& index, Cursor before, std::span<const Token> context, std::uint32_t version) {
  const Cursor now = renewed(index, before, context, version);
  const Cursor expected = index.match(context);
  BOOST_CHECK_EQUAL(now.length, expected.length);
  BOOST_CHECK_EQUAL(now.state, expected.state);
}

// Grows an index by pieces of that many tokens; after each, what matched before it is matched again.
void check_growth(unsigned seed, std::size_t piece, Token alphabet) {
  Random random(seed);
  Index index;
  std::vector<std::vector<Token>> contexts(20);
  for (std::vector<Token>& context : contexts) context = random_text(random, random() % 100, alphabet);
  std::vector<Cursor> cursors(contexts.size());
  for (int pieces = 0; pieces < 8; ++pieces) {
    const std::uint32_t version = index.version();
    std::vector<Token> text = random_text(random, random() % piece, alphabet);
    // The end of a context, and so a longer match of it.
    const std::vector<Token>& context = contexts[random() % contexts.size()];
    text.insert(text.end(), context.begin() + static_cast<std::ptrdiff_t>(context.size() / 3), context.end());
    index.append(text);
    if (random() % 2 == 0) index.end_document();
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      check_renewed(index, cursors[i], contexts[i], version);
      cursors[i] = index.match(contexts[i]);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(renewal_test)

BOOST_AUTO_TEST_CASE(a_kept_cursor_is_the_match_of_the_grown_index) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      check_growth(seed, 40, 2);
      check_growth(seed, 100, 20);
    }
  }
}

BOOST_AUTO_TEST_CASE(also_when_it_has_grown_by_much) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { check_growth(seed, 8000, 20); }
  }
}

BOOST_AUTO_TEST_CASE(a_context_that_the_text_begins_with_is_found) {
  Index index;
  const std::vector<Token> context{1, 2, 3};
  const std::uint32_t version = index.version();
  index.append(context);
  check_renewed(index, {}, context, version);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
