// What a step of a verifier costs, by the tokens that it processes.
#pragma once

#include <cstdint>
#include <span>

namespace draftd {

// A step of up to tokens[i] tokens takes micros[i]: graphs of fixed sizes pad.
// Nothing is drafted that would make a step longer than the last entry.
struct StepCost {
  std::span<const std::uint32_t> tokens;  // ascending, from 1 on, at least one
  std::span<const float> micros;          // positive, never falling
  double drafting_micros = 0.0;           // what a step costs beyond that as soon as a node is verified in it
  std::uint32_t other_tokens = 0;         // of the step, beside the rows' own
  // Ascending. The verifier pads every row to one of them; empty: to its own nodes.
  std::span<const std::uint16_t> widths;
  std::uint32_t rows = 0;  // of the step: each emits a token, whatever is drafted
};

}  // namespace draftd
