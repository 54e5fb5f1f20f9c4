// How many nodes a step should have: as many as let it emit most tokens for
// each microsecond. Sees survivals, and no trees.
//
// A step emits one token for each row, and each node with the probability of its
// survival. What it costs rises in stops, so the best number mostly fills one
// of them; it is looked for while nodes are taken, likeliest first, until no stop
// that lies ahead could be better even if all further nodes were as likely as the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draftd/step_cost.h"

namespace draftd {

// Up to `count` nodes, a step costs `micros`.
struct Stop {
  std::uint32_t count;
  double micros;
};

// The stops that lie ahead of a step without nodes, ascending; of nodes where
// the verifier pads nothing, with at most `most` of them.
void find_stops(const StepCost& cost, std::uint32_t most, std::vector<Stop>& stops);
// Of nodes of every row where it pads all rows to one width. `row_nodes`: the
// most that each wish may have; together they get at most `most`.
void find_width_stops(const StepCost& cost, std::span<const std::uint32_t> row_nodes, std::uint32_t most,
                      std::vector<Stop>& stops);

class BestCount {
 public:
  BestCount(const StepCost& cost, std::span<const Stop> stops);

  // Whether the step might be better with one more of that survival, or with more
  // behind it that are no likelier.
  bool may_gain(double survival);
  // One more, if may_gain() said so; no likelier than those before.
  void take(double survival);
  // The best number of those taken; the smaller one of equally good ones.
  std::uint32_t count() const { return best_; }

 private:
  std::span<const Stop> stops_;
  std::size_t filling_ = 0;    // the stop that the last one taken is in
  std::size_t promising_ = 0;  // the nearest stop that may still be better than the best
  double emitted_;             // tokens expected of the step with all that were taken
  double best_rate_;           // emitted for each microsecond
  std::uint32_t taken_ = 0;
  std::uint32_t best_ = 0;
};

}  // namespace draftd
