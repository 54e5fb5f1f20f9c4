#include "draft/best_count.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

namespace draftd::testing {
namespace {

using Random = std::mt19937;

struct Table {
  std::vector<std::uint32_t> tokens;
  std::vector<float> micros;

  StepCost of(std::uint32_t rows) const {
    StepCost cost;
    cost.tokens = tokens;
    cost.micros = micros;
    cost.rows = rows;
    return cost;
  }
};

struct Taking {
  std::uint32_t best;
  std::size_t taken;
};

// Takes of these, likeliest first, for as long as there may be something to gain.
Taking take(const StepCost& cost, std::uint32_t budget, const std::vector<double>& survivals) {
  std::vector<Stop> stops;
  find_stops(cost, budget, stops);
  BestCount best(cost, stops);
  std::size_t taken = 0;
  for (; taken < survivals.size() && best.may_gain(survivals[taken]); ++taken) best.take(survivals[taken]);
  return {best.count(), taken};
}

// The smallest of the best counts, by trying all of them.
std::uint32_t best_of_all(const StepCost& cost, std::uint32_t budget, const std::vector<double>& survivals) {
  const auto micros_of = [&](std::size_t count) {
    const auto entry = std::lower_bound(cost.tokens.begin(), cost.tokens.end(), cost.rows + cost.other_tokens + count);
    if (entry == cost.tokens.end()) return 0.0;
    return cost.micros[static_cast<std::size_t>(entry - cost.tokens.begin())] +
           (count == 0 ? 0.0 : cost.drafting_micros);
  };
  if (micros_of(0) == 0.0) return 0;
  double emitted = cost.rows;
  double best_rate = emitted / micros_of(0);
  std::uint32_t best = 0;
  for (std::uint32_t count = 1; count <= std::min<std::size_t>(budget, survivals.size()); ++count) {
    emitted += survivals[count - 1];
    const double micros = micros_of(count);
    if (micros == 0.0) break;
    if (emitted / micros > best_rate) {
      best_rate = emitted / micros;
      best = count;
    }
  }
  return best;
}

// Of an H100 by its roofline: 4.48 ms up to 295 tokens, then more in proportion; graphs pad.
Table roofline() {
  Table table;
  const auto add = [&](std::uint32_t tokens) {
    table.tokens.push_back(tokens);
    table.micros.push_back(4480.0F * std::max(1.0F, static_cast<float>(tokens) / 295.0F));
  };
  for (std::uint32_t tokens = 1; tokens < 64; tokens *= 2) add(tokens);
  for (std::uint32_t tokens = 64; tokens <= 1024; tokens += 32) add(tokens);
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(best_count_test)

BOOST_AUTO_TEST_CASE(the_best_of_all_counts_is_found_for_any_table_and_any_survivals) {
  Random random(1);
  const auto any = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  constexpr std::array kOdd{1.0, 1.0, 0.999, 0.5, 0.5, 1e-17, 5e-324, 0.0};  // equal ones, ones, denormals, zeros
  for (int round = 0; round < 20000; ++round) {
    Table table;
    std::uint32_t tokens = 0;
    float micros = 1.0F;
    for (std::uint32_t entries = any(1, 10); entries > 0; --entries) {
      table.tokens.push_back(tokens += any(1, 12));
      table.micros.push_back(micros += std::array{0.0F, 0.0F, 0.01F, 1.0F, 1e30F}[any(0, 4)]);
    }
    StepCost cost = table.of(any(1, 12));
    cost.other_tokens = any(0, 3) * any(0, 9);
    cost.drafting_micros = any(0, 2) * 0.5;
    std::vector<double> survivals(any(0, 60));
    for (double& survival : survivals) survival = any(0, 1) == 0 ? kOdd[any(0, 7)] : any(0, 1000) / 1000.0;
    std::sort(survivals.rbegin(), survivals.rend());
    const std::uint32_t budget = any(0, 60);
    BOOST_REQUIRE_EQUAL(take(cost, budget, survivals).best, best_of_all(cost, budget, survivals));
  }
}

BOOST_AUTO_TEST_CASE(the_best_count_fills_the_last_size_that_costs_a_plain_step) {
  const Table table = roofline();
  std::vector<double> survivals;
  for (int node = 0; node < 600; ++node) survivals.push_back(0.6 * (1.0 - node / 600.0));
  const Taking taking = take(table.of(128), 600, survivals);
  BOOST_CHECK_EQUAL(taking.best, 288 - 128);
  BOOST_CHECK_LE(taking.taken, taking.best + 1);  // beyond, nothing could pay
}

BOOST_AUTO_TEST_CASE(a_plain_step_longer_than_the_table_gets_no_node) {
  const Table table{{4, 8}, {1.0F, 1.0F}};
  const Taking taking = take(table.of(9), 100, {1.0, 1.0});
  BOOST_CHECK_EQUAL(taking.best, 0);
  BOOST_CHECK_EQUAL(taking.taken, 0);
  BOOST_CHECK_EQUAL(take(table.of(8), 100, {1.0}).best, 0);
}

BOOST_AUTO_TEST_CASE(what_drafting_itself_costs_must_be_earned_by_all_nodes_together) {
  const Table table{{64}, {100.0F}};
  StepCost cost = table.of(10);
  cost.drafting_micros = 20.0;  // a fifth more than a plain step
  BOOST_CHECK_EQUAL(take(cost, 100, {0.9, 0.9}).best, 0);
  BOOST_CHECK_EQUAL(take(cost, 100, {0.9, 0.9, 0.9}).best, 3);
}

BOOST_AUTO_TEST_CASE(widths_count_the_padding_of_every_row) {
  const Table table{{10, 20, 30, 40}, {100.0F, 100.0F, 150.0F, 150.0F}};
  constexpr std::array<std::uint16_t, 3> kWidths{1, 2, 9};
  StepCost cost = table.of(10);
  cost.widths = kWidths;
  constexpr std::array<std::uint32_t, 3> kNodes{4, 4, 0};
  std::vector<Stop> stops;
  find_width_stops(cost, kNodes, 8, stops);
  BOOST_REQUIRE_EQUAL(stops.size(), 2);  // 9 would make it longer than the table
  BOOST_CHECK_EQUAL(stops[0].micros, 100.0);
  BOOST_CHECK_EQUAL(stops[1].micros, 150.0);
  find_width_stops(cost, kNodes, 3, stops);
  BOOST_CHECK_EQUAL(stops.size(), 1);  // two nodes each would be four
}

BOOST_AUTO_TEST_CASE(no_width_is_weighed_beyond_the_first_that_has_room_for_the_longest_row) {
  const Table table{{100}, {100.0F}};
  StepCost cost = table.of(2);
  constexpr std::array<std::uint16_t, 4> kWidths{1, 3, 5, 7};
  cost.widths = kWidths;
  constexpr std::array<std::uint32_t, 2> kNodes{4, 1};
  std::vector<Stop> stops;
  find_width_stops(cost, kNodes, 100, stops);
  BOOST_REQUIRE_EQUAL(stops.size(), 3);
  BOOST_CHECK_EQUAL(stops.back().count, 5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
