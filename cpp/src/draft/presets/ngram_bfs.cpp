// SGLang's NGRAM speculation, match type BFS: after each suffix of the text
// that occurs, the longest first, what followed it most recently, breadth
// first; the longer the string, the narrower. All of it in one tree, until the
// nodes are used up.
#include <algorithm>
#include <optional>

#include "draft/presets/ngram.h"
#include "draft/presets/presets.h"

namespace draftd {
namespace {

constexpr double kWidestBreadth = 10.0;
constexpr double kNarrowest = 1.0;
constexpr double kNarrowing = (kWidestBreadth - kNarrowest) / ngram::kWindow;  // for each token of the string

}  // namespace

void Presets::ngram_bfs(const DraftWish& wish, std::span<SealedText> texts) {
  places_.begin(wish, texts, Places::From::kAll);
  for (std::uint32_t match = std::min(places_.longest(), ngram::kWindow); match > 0 && !plan_.full(); --match) {
    queue_.clear();
    queue_.push_back({Plan::kRoot, places_.suffix(match), match, kWidestBreadth - match * kNarrowing, 1.0});
    for (std::size_t next = 0; next < queue_.size() && !plan_.full(); ++next) widen(queue_[next]);
  }
}

// By value: the queue grows.
void Presets::widen(Stop stop) {
  std::span<Follower> followers = places_.followers(stop.place);
  std::uint64_t total = 0;
  for (const Follower& follower : followers) total += follower.count;
  const auto breadth = std::min(followers.size(), static_cast<std::size_t>(std::max(stop.breadth, kNarrowest)));
  std::partial_sort(followers.begin(), followers.begin() + static_cast<std::ptrdiff_t>(breadth), followers.end(),
                    [](const Follower& a, const Follower& b) { return a.later_than(b); });
  for (const Follower& follower : followers.first(breadth)) {
    const double probability = stop.probability * (follower.count / static_cast<double>(total));
    const std::optional<Plan::Node> node =
        plan_.child(stop.node, follower.token, probability, places_.source(follower));
    if (!node || stop.length + 1 == ngram::kLongest) continue;
    queue_.push_back(
        {*node, places_.below(stop.place, follower.token), stop.length + 1, stop.breadth - kNarrowing, probability});
  }
}

}  // namespace draftd
