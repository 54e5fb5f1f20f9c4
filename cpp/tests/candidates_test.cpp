#include "draft/candidates.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <span>
#include <vector>

namespace draftd::testing {
namespace {

Level context(double length, std::initializer_list<Token> followers) {
  Level level{};
  level.source = Source::kSharedHistory;
  level.origin = cells::Origin::kHistory;
  level.length = length;
  level.distinct = static_cast<std::uint32_t>(followers.size());
  for (const Token token : followers) {
    level.followers[level.ranked] = {token, 1, 8 - level.ranked, 0};
    ++level.ranked;
    ++level.total;
  }
  level.latest = *followers.begin();
  return level;
}

const Candidate& of(std::span<const Candidate> candidates, Token token) {
  return *std::find_if(candidates.begin(), candidates.end(), [=](const Candidate& it) { return it.token == token; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(candidates_test)

BOOST_AUTO_TEST_CASE(who_is_known_is_not_taken_for_unknown_when_there_is_no_room_for_more) {
  Candidates candidates;
  candidates.add(context(3, {0, 1, 2, 3, 4, 5, 6, 7}));
  candidates.add(context(2, {8, 9, 10, 11, 12, 13, 14, 15}));
  candidates.add(context(1, {16, 17, 18, 19, 20, 21, 0, 8}));  // 20 and 21 find no room
  RecentPairs::Followers pairs;
  for (const Token token : {1, 22}) pairs.add(token);  // the latest first
  candidates.add_pairs(0, Source::kOwnText, pairs);
  const std::vector<FrequentToken> frequent{{23, 2}, {2, 1}};
  candidates.add(Fill{frequent, 10, 2});

  const std::span<const Candidate> described = candidates.described();
  BOOST_CHECK_EQUAL(described.size(), Model::kMostCandidates);
  BOOST_CHECK_NE(of(described, 0).cells[2], of(described, 1).cells[2]);
  BOOST_CHECK_NE(of(described, 8).cells[2], of(described, 9).cells[2]);
  BOOST_CHECK_NE(of(described, 1).cells[3], of(described, 2).cells[3]);
  BOOST_CHECK_GT(of(described, 2).blend, of(described, 3).blend);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
