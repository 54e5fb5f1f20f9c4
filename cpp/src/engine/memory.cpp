// What goes when memory runs out: whatever was longest unused, be it a request,
// a head of a history, or what a namespace learned.
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/storage.h"

namespace draftd {
namespace {

struct OldestSession {
  Verifier* verifier;
  std::uint32_t request;
  double last_used;
};

struct OldestHistory {
  NamespaceState* home;
  std::map<std::string, GroupHistory>::iterator group;  // end: the history of the namespace itself
  double last_used;
};

std::optional<OldestSession> oldest_session(
    const boost::unordered_flat_map<std::uint64_t, std::unique_ptr<Verifier>>& verifiers) {
  std::optional<OldestSession> oldest;
  for (const auto& [incarnation, verifier] : verifiers) {
    for (const auto& [request, entry] : verifier->sessions) {
      if (!oldest || entry->last_used < oldest->last_used) oldest = {verifier.get(), request, entry->last_used};
    }
  }
  return oldest;
}

std::optional<OldestHistory> oldest_history(const std::vector<std::unique_ptr<NamespaceState>>& namespaces) {
  std::optional<OldestHistory> oldest;
  for (const auto& home : namespaces) {
    if (home->history.live_tokens() > 0 && (!oldest || home->last_used < oldest->last_used)) {
      oldest = {home.get(), home->groups.end(), home->last_used};
    }
    for (auto group = home->groups.begin(); group != home->groups.end(); ++group) {
      const History& history = group->second.history;
      if (history.live_tokens() == 0 && !history.segments()->empty()) continue;
      if (!oldest || group->second.last_used < oldest->last_used) {
        oldest = {home.get(), group, group->second.last_used};
      }
    }
  }
  return oldest;
}

NamespaceState* longest_untaught(const std::vector<std::unique_ptr<NamespaceState>>& namespaces) {
  NamespaceState* oldest = nullptr;
  for (const auto& home : namespaces) {
    if (home->learned.model == nullptr) continue;
    if (oldest == nullptr || home->learned.last_taught < oldest->learned.last_taught) oldest = home.get();
  }
  return oldest;
}

}  // namespace

void Engine::Storage::enforce_memory_limit(Retired& retired) {
  while (session_bytes + kept.memory_size() + live_bytes + learned_bytes > limits.memory && evict_one(retired)) {
  }
}

void Engine::Storage::enforce_memory_limit(Turn& turn, Retired& retired) {
  const auto is_passed = [&] {
    const std::scoped_lock guard(accounts);
    return session_bytes + kept.memory_size() + live_bytes + learned_bytes > limits.memory;
  };
  if (!is_passed()) return;
  turn.insist();
  enforce_memory_limit(retired);
}

// What is only kept goes before anything in use. At equal age a history goes first, then what was learned: a request
// that lost its session has to be sent again, one that lost these only drafts less.
bool Engine::Storage::evict_one(Retired& retired) {
  if (kept.drop_oldest(retired.text)) return true;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto session = oldest_session(verifiers);
  const auto history = oldest_history(namespaces);
  NamespaceState* const learner = longest_untaught(namespaces);
  const double session_used = session ? session->last_used : kNever;
  const double taught = learner == nullptr ? kNever : learner->learned.last_taught;
  if (history && history->last_used <= std::min(session_used, taught)) {
    NamespaceState& home = *history->home;
    const bool of_group = history->group != home.groups.end();
    History& oldest = of_group ? history->group->second.history : home.history;
    change(oldest, [&](History& changed) { return changed.forget(retired.text); });
    if (of_group && oldest.tokens() == 0) {
      first_generation = std::max(first_generation, oldest.generation() + 1);
      live_bytes -= oldest.live_memory_size();
      home.groups.erase(history->group);
    }
    return true;
  }
  if (learner != nullptr && taught <= session_used) {
    retired.models.push_back(exchange_model(*learner, nullptr));
    return true;
  }
  if (!session) return false;
  retire(take(*session->verifier, session->request), retired);
  ++statistics.evicted_sessions;
  return true;
}

}  // namespace draftd
