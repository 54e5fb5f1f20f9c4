#include "draftd/ngram.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace draftd::testing {
namespace {

using Tokens = std::vector<Token>;

Tokens copied(std::span<const Token> tokens) { return {tokens.begin(), tokens.end()}; }

// Every place of the text, for every length.
Tokens scanned(const Tokens& text, const NgramRule& rule, std::size_t most) {
  for (std::size_t length = rule.longest; length >= rule.shortest; --length) {
    Tokens found;
    bool any = false;
    for (std::size_t start = 0; start + length < text.size(); ++start) {
      if (!std::equal(text.end() - static_cast<std::ptrdiff_t>(length), text.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(start)))
        continue;
      if (!any || rule.newest) found = copied(std::span(text).subspan(start + length));
      any = true;
    }
    if (any) {
      found.resize(std::min(found.size(), most));
      return found;
    }
  }
  return {};
}

void check_same(const Tokens& found, const Tokens& expected) {
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ngram_test)

BOOST_AUTO_TEST_CASE(both_forms_equal_a_scan_while_texts_grow_and_are_taken_back) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937 random(seed);
      const auto up_to = [&](int greatest) { return std::uniform_int_distribution<int>(0, greatest)(random); };
      const auto shortest = static_cast<std::uint32_t>(1 + up_to(4));
      const NgramRule rule(shortest, shortest + static_cast<std::uint32_t>(up_to(4)), up_to(1) == 1);
      const int alphabet = 1 + up_to(2);
      Tokens text;
      NgramText grown(rule);
      for (int step = 0; step < 20; ++step) {
        const auto start = text.size() - std::min<std::size_t>(text.size(), up_to(4) == 0 ? 3 : 0);
        text.resize(start);
        Tokens fresh(static_cast<std::size_t>(up_to(5)));
        for (Token& token : fresh) token = up_to(alphabet);
        text.insert(text.end(), fresh.begin(), fresh.end());
        grown.put(start, fresh);
        const Tokens expected = scanned(text, rule, 4);
        check_same(copied(grown.continuation(4)), expected);
        check_same(copied(ngram_continuation(text, rule, 4)), expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_tokens_of_one_text_say_nothing_of_another) {
  NgramTexts texts(NgramRule(1, 3, false));
  const std::vector<std::uint64_t> request{1, 2};
  const std::vector<std::uint32_t> start{0, 0};
  const std::vector<std::uint32_t> token_end{4, 6};
  const Tokens tokens{5, 6, 7, 5, 6, 7};
  const std::vector<std::uint32_t> most{8, 8};
  NgramChains chains;
  texts.propose({request, start, token_end, tokens, most}, chains);
  check_same(chains.tokens, {6, 7, 5});
  BOOST_TEST(chains.node_end == (std::vector<std::uint32_t>{3, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_batch_with_a_gap_is_refused_as_a_whole) {
  NgramTexts texts(NgramRule(1, 3, false));
  const std::vector<std::uint64_t> request{1, 2};
  const std::vector<std::uint32_t> start{0, 1};
  const std::vector<std::uint32_t> token_end{2, 3};
  const Tokens tokens{5, 5, 6};
  const std::vector<std::uint32_t> most{8, 8};
  NgramChains chains;
  const auto refuse = [&] {
    BOOST_CHECK_THROW(texts.propose({request, start, token_end, tokens, most}, chains), std::invalid_argument);
    return texts.memory_size();
  };
  const std::size_t with_scratch = refuse();
  BOOST_TEST(refuse() == with_scratch);
}

BOOST_AUTO_TEST_CASE(a_token_costs_bounded_memory_whatever_the_text) {
  constexpr std::size_t kTokens = 100000;
  for (const int alphabet : {1, 2, 131072}) {
    std::mt19937 random(7);
    Tokens text(kTokens);
    for (Token& token : text) token = std::uniform_int_distribution<int>(0, alphabet - 1)(random);
    NgramText grown(NgramRule(2, 5, false));
    grown.put(0, text);
    // Four bytes of the token; for each of the four lengths five and the slack of a table that doubles.
    BOOST_TEST(grown.memory_size() < 55 * kTokens);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
