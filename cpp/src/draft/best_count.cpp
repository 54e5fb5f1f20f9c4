#include "draft/best_count.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace draftd {
namespace {

// A bound is multiplied by this, for sums are rounded: what is stopped for is
// really no better.
constexpr double kRounding = 1.0 + 1e-9;

// Of a step with that many tokens; none where the table ends before.
std::optional<double> micros_of(const StepCost& cost, std::uint64_t tokens) {
  const auto entry = std::lower_bound(cost.tokens.begin(), cost.tokens.end(), tokens);
  if (entry == cost.tokens.end()) return std::nullopt;
  return static_cast<double>(cost.micros[static_cast<std::size_t>(entry - cost.tokens.begin())]);
}

std::uint64_t plain_tokens(const StepCost& cost) { return std::uint64_t{cost.rows} + cost.other_tokens; }

}  // namespace

void find_stops(const StepCost& cost, std::uint32_t most, std::vector<Stop>& stops) {
  stops.clear();
  const std::uint64_t plain = plain_tokens(cost);
  const auto first = std::upper_bound(cost.tokens.begin(), cost.tokens.end(), plain);
  for (auto i = static_cast<std::size_t>(first - cost.tokens.begin()); i < cost.tokens.size(); ++i) {
    const std::uint64_t count = std::min<std::uint64_t>(cost.tokens[i] - plain, most);
    stops.push_back({static_cast<std::uint32_t>(count), static_cast<double>(cost.micros[i]) + cost.drafting_micros});
    if (count == most) return;
  }
}

void find_width_stops(const StepCost& cost, std::span<const std::uint32_t> row_nodes, std::uint32_t most,
                      std::vector<Stop>& stops) {
  stops.clear();
  const std::uint32_t longest = row_nodes.empty() ? 0 : *std::ranges::max_element(row_nodes);
  for (const std::uint16_t width : cost.widths) {
    std::uint64_t nodes = 0;
    for (const std::uint32_t own : row_nodes) nodes += std::min<std::uint32_t>(own, width);
    const auto micros = micros_of(cost, plain_tokens(cost) + std::uint64_t{cost.rows} * width);
    if (!micros || nodes > most) return;
    stops.push_back({width, *micros + cost.drafting_micros});
    if (width >= longest) return;  // what is wider is padding alone
  }
}

// A plain step that is longer than the table has no stop ahead, whatever it costs.
BestCount::BestCount(const StepCost& cost, std::span<const Stop> stops)
    : stops_(stops),
      emitted_(cost.rows),
      best_rate_(emitted_ / micros_of(cost, plain_tokens(cost)).value_or(std::numeric_limits<double>::infinity())) {}

// What can't be better than the best any more never can: neither does its bound
// rise, nor the best fall.
bool BestCount::may_gain(double survival) {
  for (; promising_ < stops_.size(); ++promising_) {
    const auto [count, micros] = stops_[promising_];
    if (count <= taken_) continue;
    const double bound = emitted_ + (count - taken_) * survival;
    if (bound * kRounding > best_rate_ * micros) return true;
  }
  return false;
}

void BestCount::take(double survival) {
  emitted_ += survival;
  ++taken_;
  while (stops_[filling_].count < taken_) ++filling_;
  const double rate = emitted_ / stops_[filling_].micros;
  if (rate > best_rate_) {
    best_rate_ = rate;
    best_ = taken_;
  }
}

}  // namespace draftd
