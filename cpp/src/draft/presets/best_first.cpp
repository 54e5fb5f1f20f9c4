#include "draft/presets/best_first.h"

#include <algorithm>
#include <optional>
#include <span>

namespace draftd {

void BestFirst::grow(Plan& plan, Places& places, std::uint32_t length, std::uint32_t longest, ShareOf share_of) {
  candidates_.clear();
  proposed_ = 0;
  String string{Plan::kRoot, places.suffix(length), length, 0, 1.0};
  propose(places, string, plan.most(), share_of);
  while (!candidates_.empty() && !plan.full()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), less_likely);
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    const Follower& follower = best.follower;
    const std::optional<Plan::Node> node =
        plan.child(best.before.node, follower.token, best.probability, places.source(follower));
    if (!node || best.before.length + 1 == longest) continue;
    string = {*node, places.below(best.before.place, follower.token), best.before.length + 1, follower.count,
              best.probability};
    propose(places, string, plan.most(), share_of);
  }
}

void BestFirst::propose(Places& places, const String& string, std::size_t most, ShareOf share_of) {
  std::span<Follower> followers = places.followers(string.place);
  const std::size_t ranked = std::min(followers.size(), share_of == ShareOf::kMostFrequent ? kMostFrequent : most);
  std::partial_sort(followers.begin(), followers.begin() + static_cast<std::ptrdiff_t>(ranked), followers.end(),
                    [](const Follower& a, const Follower& b) { return a.more_than(b); });
  if (share_of == ShareOf::kMostFrequent) followers = followers.first(ranked);
  std::uint64_t whole = 0;
  for (const Follower& follower : followers) whole += follower.count;
  if (share_of == ShareOf::kOccurrences) {
    whole = string.count == 0 ? whole + 1 : std::max<std::uint64_t>(whole, string.count);
  }
  for (const Follower& follower : followers.first(std::min(ranked, most))) {
    const double share = static_cast<double>(follower.count) / static_cast<double>(whole);
    candidates_.push_back({string, follower, string.probability * share, proposed_++});
    std::push_heap(candidates_.begin(), candidates_.end(), less_likely);
  }
}

}  // namespace draftd
