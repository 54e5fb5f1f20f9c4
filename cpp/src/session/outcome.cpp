#include "draftd/outcome.h"

#include <algorithm>
#include <utility>

namespace draftd {

bool Verified::went_through(std::size_t node) const {
  if (nodes == kBitmap) return node < bitmap.size() && bitmap[node] != 0;
  return nodes == kAll || std::cmp_less(node, nodes);
}

void Tail::follow(std::span<const Token> tokens, const Verified& verified, std::vector<std::uint16_t>& path) const {
  std::int32_t reached = path.empty() ? -1 : path.back();
  std::size_t node = path.empty() ? 0 : path.back() + std::size_t{1};
  for (auto token = tokens.begin(); node < nodes.size() && token != tokens.end(); ++node) {
    if (nodes[node].parent != reached || nodes[node].token != *token || !verified.went_through(node)) continue;
    path.push_back(static_cast<std::uint16_t>(node));
    reached = static_cast<std::int32_t>(node);
    ++token;
  }
}

void Acceptance::add(const Acceptance& other) {
  const auto add_each = [](std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& more) {
    if (sum.size() < more.size()) sum.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
  };
  steps += other.steps;
  drafts += other.drafts;
  covered += other.covered;
  add_each(verified, other.verified);
  add_each(accepted, other.accepted);
}

void Acceptance::clear() {
  steps = drafts = covered = 0;
  verified.clear();
  accepted.clear();
}

void Outcome::teach(Model& model) const {
  const std::size_t places = lesson.end.empty() ? 0 : std::min(path.size() + 1, followed.size());
  for (std::size_t place = 0; place < places; ++place) {
    model.learn(lesson.of(place == 0 ? 0 : path[place - 1] + std::size_t{1}), followed[place]);
  }
  for (const Judged& node : judged) model.learn_survival(node.raw, node.accepted);
}

}  // namespace draftd
