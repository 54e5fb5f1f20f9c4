// The invariants of the automaton, spelled out and checked.
#include <algorithm>
#include <string>
#include <vector>

#include "automaton/storage.h"

namespace draftd {

void Index::check_integrity() const {
  const Storage& s = *storage_;
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw IntegrityError("index: " + what);
  };
  require(s.prefix_link.size() == s.text.size() + 1, "one link per prefix state");
  for (State state = 1; state < s.prefix_link.size(); ++state) {
    const State link = s.prefix_link[state];
    require(!is_prefix(link) && number(link) < s.branching.size(),
            "link of prefix state " + std::to_string(state) + " leads to a branching state");
  }
  std::size_t edges = 0;
  std::vector<Continuation> followers;
  for (std::uint32_t i = 0; i < s.branching.size(); ++i) {
    const Branching& state = s.branching[i];
    const std::string name = "branching state " + std::to_string(i);
    require((state.link == kNone) == (i == 0), name + " has a link unless it is the root");
    const std::uint32_t shorter = i == 0 ? 0 : s.length(state.link);
    require(i == 0 || shorter < state.length, name + " is longer than its link");
    require(state.last < s.text.size() + 1, name + " last occurred inside the text");
    require(state.degree <= EdgeArena::limit(std::max(state.capacity, 1U)), name + " has room for its edges");
    edges += state.degree;

    followers.resize(state.degree);
    continuations(kBranching | i, followers);
    std::uint64_t followed = 0;
    for (const Continuation& follower : followers) {
      require(follower.target != 0 && s.length(follower.target) > state.length,
              name + " leads by " + std::to_string(follower.token) + " to a longer context");
      require(s.target(kBranching | i, follower.token) == follower.target,
              name + " finds its edge by " + std::to_string(follower.token));
      followed += follower.count;
    }
    if (shorter < kMaxMatch) {
      require(followed <= state.count, name + " is followed no more often than it occurs");
      require(i == 0 || state.count <= s.branching[number(state.link)].count, name + " is rarer than its link");
    }
  }
  require(edges == s.edges, "number of edges");
}

}  // namespace draftd
