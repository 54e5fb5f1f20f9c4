#include "draftd/drafting.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sealed.h"
#include "support/crew.h"

namespace draftd::testing {
namespace {

using Random = std::mt19937;

std::vector<Token> random_text(Random& random, std::size_t length) {
  std::vector<Token> text(length);
  for (Token& token : text) token = static_cast<Token>(std::uniform_int_distribution<>(0, 5)(random));
  return text;
}

// Requests that read the same three indexes and two segments.
class Batch {
 public:
  explicit Batch(Random& random) {
    for (Index& index : indexes_) {
      index.append(random_text(random, 300));
      index.end_document();
    }
    for (int i = 0; i < 2; ++i) segments_.push_back(sealed({random_text(random, 300), random_text(random, 20)}));
  }

  DraftWish& add(std::vector<Token> context) {
    const std::span<const Token> text = texts_.emplace_back(std::move(context));
    std::vector<LiveSource>& live = live_.emplace_back();
    for (const Index& index : indexes_) live.push_back({&index, Source::kSharedHistory, index.match(text)});
    DraftWish& wish = wishes.emplace_back();
    wish.text = text;
    wish.sealed = {&sealed_, 1};
    wish.fill = {indexes_[0].frequent_tokens(), indexes_[0].tokens(), indexes_[0].degree(kRoot)};
    wish.model = &model_;
    wish.max_nodes = 16;
    return wish;
  }

  void draft(std::uint32_t budget = UINT32_MAX, double min_survival = 0.0, const StepCost* cost = nullptr) {
    for (std::size_t i = 0; i < wishes.size(); ++i) wishes[i].live = live_[i];
    drafter.draft(wishes, budget, min_survival, cost);
  }

  std::size_t nodes() const {
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < wishes.size(); ++i) nodes += drafter.tree(i).size();
    return nodes;
  }

  std::vector<DraftWish> wishes;
  Drafter drafter;

 private:
  Model model_;
  std::array<Index, 3> indexes_;
  SegmentSet segments_;
  SealedSource sealed_{&segments_, Source::kCorpus};
  std::deque<std::vector<Token>> texts_;  // wishes point into them
  std::vector<std::vector<LiveSource>> live_;
};

bool same_tree(std::span<const DraftNode> a, std::span<const DraftNode> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const DraftNode& one, const DraftNode& other) {
    return one.token == other.token && one.parent == other.parent && one.survival == other.survival;
  });
}

void check_below(const DraftNode& node, const DraftNode& above, const DraftWish& wish) {
  BOOST_CHECK_LE(node.survival, above.survival);
  BOOST_CHECK(std::find(wish.stop_ids.begin(), wish.stop_ids.end(), above.token) == wish.stop_ids.end());
}

void check_tree(std::span<const DraftNode> tree, const DraftWish& wish, double min_survival) {
  BOOST_CHECK_LE(tree.size(), wish.max_nodes);
  min_survival = std::max(min_survival, wish.policy.min_survival);
  std::set<std::pair<int, Token>> seen;
  std::map<int, std::uint32_t> depth{{-1, 0}};
  std::map<int, std::uint32_t> children;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const DraftNode& node = tree[i];
    BOOST_CHECK_LT(node.parent, static_cast<int>(i));
    BOOST_CHECK_MESSAGE(seen.insert({node.parent, node.token}).second, "two equal children of node " << node.parent);
    BOOST_CHECK_LT(node.token, wish.vocabulary);
    BOOST_CHECK_GE(node.survival, static_cast<float>(min_survival));
    if (wish.chain) BOOST_CHECK_EQUAL(node.parent, static_cast<int>(i) - 1);
    depth[static_cast<int>(i)] = depth[node.parent] + 1;
    BOOST_CHECK_LE(depth[static_cast<int>(i)], wish.policy.max_depth);
    BOOST_CHECK_LE(++children[node.parent], wish.policy.max_breadth);
    if (i > 0) BOOST_CHECK_LE(node.survival, tree[i - 1].survival);
    if (node.parent >= 0) check_below(node, tree[static_cast<std::size_t>(node.parent)], wish);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafting_test)

BOOST_AUTO_TEST_CASE(trees_keep_their_promises_for_any_wish) {
  Random random(1);
  const std::vector<Token> stop_ids{3};
  for (int round = 0; round < 200; ++round) {
    Batch batch(random);
    for (int request = 0; request < 4; ++request) {
      DraftWish& wish = batch.add(random_text(random, 20));
      wish.max_nodes = std::uniform_int_distribution<std::uint32_t>(0, 40)(random);
      wish.chain = request % 2 == 1;
      if (request == 2) wish.stop_ids = stop_ids;
      if (request == 3) wish.vocabulary = 4;
      wish.policy.preset = static_cast<Preset>((round + request) % 4);
      if (round % 3 == 0) wish.policy.max_depth = 2;
      if (round % 5 == 0) wish.policy.max_breadth = 2;
      if (round % 7 == 0) wish.policy.min_survival = 0.1;
    }
    const double min_survival = round % 2 == 0 ? 0.0 : 0.05;
    const auto budget = std::uniform_int_distribution<std::uint32_t>(0, 100)(random);
    batch.draft(budget, min_survival);
    BOOST_CHECK_LE(batch.nodes(), budget);
    for (std::size_t i = 0; i < batch.wishes.size(); ++i) {
      check_tree(batch.drafter.tree(i), batch.wishes[i], min_survival);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_budget_takes_the_likeliest_nodes_of_the_batch) {
  Random random(2);
  Batch batch(random);
  for (int request = 0; request < 8; ++request) batch.add(random_text(random, 20));
  batch.draft();
  std::vector<float> all;
  for (std::size_t i = 0; i < batch.wishes.size(); ++i) {
    for (const DraftNode& node : batch.drafter.tree(i)) all.push_back(node.survival);
  }
  std::sort(all.rbegin(), all.rend());

  batch.draft(30);
  std::vector<float> taken;
  for (std::size_t i = 0; i < batch.wishes.size(); ++i) {
    for (const DraftNode& node : batch.drafter.tree(i)) taken.push_back(node.survival);
  }
  std::sort(taken.rbegin(), taken.rend());
  all.resize(30);
  BOOST_CHECK_EQUAL_COLLECTIONS(taken.begin(), taken.end(), all.begin(), all.end());
}

BOOST_AUTO_TEST_CASE(what_pays_is_what_a_budget_of_that_many_nodes_takes) {
  Random random(6);
  const auto any = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  std::size_t drafted = 0;
  for (int round = 0; round < 100; ++round) {
    Batch batch(random);
    for (std::uint32_t request = 0; request < 6; ++request) {
      DraftWish& wish = batch.add(random_text(random, 20));
      wish.max_nodes = any(0, 20);
      wish.chain = request % 2 == 1;
      wish.policy.preset = static_cast<Preset>(any(0, 3));
    }
    const std::vector<std::uint32_t> tokens{8, 12, 16, 24, 32, 64};
    std::vector<float> micros{100.0F};
    while (micros.size() < tokens.size()) micros.push_back(micros.back() + static_cast<float>(any(0, 30)));
    StepCost cost;
    cost.tokens = tokens;
    cost.micros = micros;
    cost.rows = 6;
    batch.draft(UINT32_MAX, 0.0, &cost);
    std::vector<std::vector<DraftNode>> trees;
    for (std::size_t i = 0; i < batch.wishes.size(); ++i) {
      const std::span<const DraftNode> tree = batch.drafter.tree(i);
      trees.emplace_back(tree.begin(), tree.end());
      check_tree(tree, batch.wishes[i], 0.0);
      if (batch.wishes[i].policy.preset != Preset::kLearned) continue;
      BOOST_CHECK_EQUAL(batch.drafter.lesson(i).raw.size(), tree.size());
      BOOST_CHECK_EQUAL(batch.drafter.lesson(i).end.size(), tree.size() + 1);
    }
    const std::size_t count = batch.nodes();
    drafted += count;
    batch.draft(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < trees.size(); ++i) BOOST_CHECK(same_tree(batch.drafter.tree(i), trees[i]));
  }
  BOOST_CHECK_GT(drafted, 1000);
}

BOOST_AUTO_TEST_CASE(padded_to_one_width_no_tree_has_more_nodes_than_it) {
  Random random(7);
  Batch batch(random);
  for (int request = 0; request < 6; ++request) batch.add(random_text(random, 20)).max_nodes = request == 5 ? 1 : 16;
  const std::vector<std::uint32_t> tokens{12, 30, 60};
  const std::vector<float> micros{100.0F, 101.0F, 1000.0F};
  const std::vector<std::uint16_t> widths{1, 4, 9};
  StepCost cost;
  cost.tokens = tokens;
  cost.micros = micros;
  cost.widths = widths;
  cost.rows = 6;
  batch.draft(UINT32_MAX, 0.0, &cost);
  for (std::size_t i = 0; i < 5; ++i) BOOST_CHECK_EQUAL(batch.drafter.tree(i).size(), 4);
  BOOST_CHECK_EQUAL(batch.drafter.tree(5).size(), 1);
}

BOOST_AUTO_TEST_CASE(where_no_node_pays_that_is_the_reason) {
  Random random(8);
  Batch batch(random);
  batch.add(random_text(random, 20));
  const std::uint32_t tokens = 1;
  const float micros = 100.0F;
  StepCost cost;
  cost.tokens = {&tokens, 1};
  cost.micros = {&micros, 1};
  cost.rows = 1;
  batch.draft(UINT32_MAX, 0.0, &cost);
  BOOST_CHECK(batch.drafter.tree(0).empty());
  BOOST_CHECK(batch.drafter.empty_because(0) == Reason::kNotWorthIt);
}

BOOST_AUTO_TEST_CASE(a_request_is_drafted_the_same_alone_and_in_a_batch) {
  Random random(3);
  Batch batch(random);
  std::vector<std::vector<Token>> texts;
  for (int request = 0; request < 8; ++request) {
    texts.push_back(random_text(random, 20));
    batch.add(texts.back()).policy.preset = static_cast<Preset>(request % 4);
  }
  batch.draft();
  std::vector<std::vector<DraftNode>> together;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    together.emplace_back(batch.drafter.tree(i).begin(), batch.drafter.tree(i).end());
  }
  const std::vector<DraftWish> wishes = batch.wishes;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    Drafter alone;
    alone.draft({&wishes[i], 1}, UINT32_MAX, 0.0);
    BOOST_CHECK(same_tree(alone.tree(0), together[i]));
  }
}

BOOST_AUTO_TEST_CASE(with_a_crew_the_same_drafts_are_made) {
  Random random(6);
  Batch batch(random);
  for (int request = 0; request < 70; ++request) {
    batch.add(random_text(random, 20)).policy.preset = static_cast<Preset>(request % 4);
  }
  Crew crew(3);
  Drafter shared(&crew);
  const std::vector<std::uint32_t> tokens{70, 140, 210, 2000};
  const std::vector<float> micros{100.0F, 120.0F, 150.0F, 1500.0F};
  const std::vector<std::uint16_t> widths{2, 4, 8};
  StepCost cost;
  cost.tokens = tokens;
  cost.micros = micros;
  cost.rows = 70;
  StepCost padded = cost;
  padded.widths = widths;
  const auto check = [&](std::uint32_t budget, double min_survival, const StepCost* of) {
    batch.draft(budget, min_survival, of);
    shared.draft(batch.wishes, budget, min_survival, of);
    for (std::size_t i = 0; i < batch.wishes.size(); ++i) {
      BOOST_CHECK(same_tree(shared.tree(i), batch.drafter.tree(i)));
      if (shared.tree(i).empty()) BOOST_CHECK(shared.empty_because(i) == batch.drafter.empty_because(i));
    }
    BOOST_TEST(batch.nodes() > 0U);
  };
  for (int round = 0; round < 20; ++round) {
    check(UINT32_MAX, 0.0, nullptr);
    check(UINT32_MAX, 0.1, nullptr);
    check(100, 0.0, nullptr);
    check(UINT32_MAX, 0.0, &cost);
    check(UINT32_MAX, 0.0, &padded);
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_draft_from_says_why) {
  Drafter drafter;
  const Index nothing;
  const LiveSource source{&nothing, Source::kOwnText, {}};
  const Model model;
  DraftWish wish;
  wish.model = &model;
  wish.live = {&source, 1};
  wish.max_nodes = 4;
  drafter.draft({&wish, 1}, 4, 0.0);
  BOOST_CHECK(drafter.tree(0).empty());
  BOOST_CHECK(drafter.empty_because(0) == Reason::kNoMatch);

  Random random(4);
  Batch batch(random);
  batch.add(random_text(random, 20));
  batch.draft(0);
  BOOST_CHECK(batch.drafter.empty_because(0) == Reason::kBudgetSpent);
  batch.draft(16, 1.0);
  BOOST_CHECK(batch.drafter.empty_because(0) == Reason::kBelowThreshold);
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_no_trouble) {
  Drafter drafter;
  drafter.draft({}, 0, 0.0);
  drafter.draft({}, UINT32_MAX, 1.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
