// Histories as their keeper sees them: drained, sealed, restored, forgotten.
// Steps take the same lock, so each hold of it is short.
#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "engine/storage.h"

namespace draftd {
namespace {

// For each hold of the lock: some ten microseconds.
constexpr std::size_t kCopiedTokens = 1 << 14;
constexpr std::size_t kListedHistories = 64;

void clear(HistoryDocuments& documents) {
  documents.tokens.clear();
  documents.document_end.clear();
  documents.labels.clear();
  documents.times.clear();
}

// Puts a slice behind what was copied of the same head before.
void join(HistoryDocuments& slice, HistoryDocuments& documents) {
  const auto before = static_cast<std::int64_t>(documents.tokens.size());
  documents.tokens.insert(documents.tokens.end(), slice.tokens.begin(), slice.tokens.end());
  for (const std::int64_t end : slice.document_end) documents.document_end.push_back(before + end);
  std::move(slice.labels.begin(), slice.labels.end(), std::back_inserter(documents.labels));
  documents.times.insert(documents.times.end(), slice.times.begin(), slice.times.end());
}

// Takes off the beginning of a document whose rest is gone.
void cut_off(HistoryDocuments& documents) {
  documents.tokens.resize(documents.document_end.empty() ? 0 : static_cast<std::size_t>(documents.document_end.back()));
}

// The group of the history that is the namespace's own.
const std::string kOwnHistory;

}  // namespace

std::deque<HistoryKey> Engine::Storage::history_keys() const {
  std::deque<HistoryKey> keys;
  HistoryKey next{0, {}};
  for (bool more = true; more;) {
    const std::scoped_lock guard(lock);
    for (std::size_t listed = 0; listed < kListedHistories && more; ++listed) {
      more = next.name_space < namespaces.size();
      if (!more) break;
      keys.push_back(next);
      const auto& groups = namespaces[next.name_space]->groups;
      const auto group = groups.upper_bound(next.group);
      next = group == groups.end() ? HistoryKey{next.name_space + 1, {}} : HistoryKey{next.name_space, group->first};
    }
  }
  return keys;
}

History* Engine::Storage::find_history(const HistoryKey& key) const {
  NamespaceState& home = *namespaces.at(key.name_space);
  if (key.group.empty()) return &home.history;
  const auto group = home.groups.find(key.group);
  return group == home.groups.end() ? nullptr : &group->second.history;
}

History& Engine::Storage::history_of(const HistoryKey& key, double now) {
  NamespaceState& home = *namespaces.at(key.name_space);
  home.last_used = std::max(home.last_used, now);
  if (key.group.empty()) return home.history;
  const auto [group, created] =
      home.groups.try_emplace(key.group, GroupHistory{History(limits.history, first_generation), now});
  group->second.last_used = std::max(group->second.last_used, now);
  if (created) live_bytes += group->second.history.live_memory_size();
  return group->second.history;
}

std::vector<HistoryDocuments> Engine::drain_history() {
  Storage& s = *storage_;
  const std::scoped_lock one_at_a_time(s.draining);
  std::vector<HistoryDocuments> drained;
  HistoryDocuments slice;
  slice.tokens.reserve(kCopiedTokens);
  for (const HistoryKey& key : s.history_keys()) s.drain(key, slice, drained);
  return drained;
}

// Appends what waits in one history, by head. `slice` is filled under the lock
// and copied after it: what is drained grows, and growing may take long.
void Engine::Storage::drain(const HistoryKey& key, HistoryDocuments& slice, std::vector<HistoryDocuments>& drained) {
  const std::size_t before = drained.size();
  for (;;) {
    clear(slice);
    {
      const std::scoped_lock guard(lock);
      History* const history = find_history(key);
      if (history == nullptr || !history->drain(kCopiedTokens, slice)) break;
    }
    if (drained.size() == before || drained.back().generation != slice.generation) {
      drained.push_back({key, slice.generation, {}, {}, {}, {}});
    }
    join(slice, drained.back());
  }
  // A limit may have dropped a head in the middle of a document.
  std::for_each(drained.begin() + static_cast<std::ptrdiff_t>(before), drained.end(), cut_off);
}

std::vector<HistoryState> Engine::histories() const {
  const Storage& s = *storage_;
  std::vector<HistoryState> states;
  for (const HistoryKey& key : s.history_keys()) {
    const std::scoped_lock guard(s.lock);
    const History* const history = s.find_history(key);
    if (history == nullptr) continue;
    states.push_back({key, history->generation(), history->newer().tokens(), history->head_memory_size(),
                      history->older().tokens(), history->segments()->size(), history->oldest().value_or(0)});
  }
  return states;
}

std::optional<HistoryDocuments> Engine::freeze_history(const HistoryKey& key) {
  Storage& s = *storage_;
  std::shared_ptr<const Head> frozen;
  {
    const std::scoped_lock guard(s.lock);
    if (History* const history = s.find_history(key)) {
      s.change(*history, [&](History& changed) {
        frozen = changed.freeze();
        return 0;
      });
    }
  }
  if (frozen == nullptr) return std::nullopt;
  HistoryDocuments documents{key, frozen->generation(), {}, {}, {}, {}};
  documents.tokens.reserve(frozen->index().tokens());
  for (std::size_t document = 0; document < frozen->documents(); ++document) {
    frozen->copy(document, 0, SIZE_MAX, documents);
  }
  return documents;
}

void Engine::publish_history(const HistoryKey& key, SegmentSet segments, bool drop_frozen, double now) {
  Storage& s = *storage_;
  Retired retired;
  const std::scoped_lock guard(s.lock);
  // To be published to is not to be used.
  History* const known = s.find_history(key);
  History& history = known == nullptr ? s.history_of(key, now) : *known;
  s.change(history, [&](History& changed) { return changed.publish(std::move(segments), drop_frozen, retired.text); });
  // What was left out of the segments may have been in flight before.
  if (history.flight().dead_tokens() > 0) s.begin_anew(history, retired);
  s.take_away(*s.namespaces[key.name_space]);
  s.enforce_memory_limit(retired);
}

void Engine::restore_history(const HistoryDocuments& documents, double now) {
  Storage& s = *storage_;
  {
    const std::scoped_lock guard(s.lock);
    s.history_of(documents.history, now).raise_generation(documents.generation);
  }
  const std::span<const Token> tokens(documents.tokens);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < documents.document_end.size(); ++i) {
    const auto end = static_cast<std::size_t>(documents.document_end[i]);
    Retired retired;
    const std::scoped_lock guard(s.lock);
    History& history = s.history_of(documents.history, now);
    if (!history.can_restore()) {
      throw std::logic_error("restore_history: the history already has documents of this life; restore before serving");
    }
    s.change(history, [&](History& changed) {
      return changed.restore(tokens.subspan(begin, end - begin), documents.labels[i], documents.times[i], retired.text);
    });
    s.enforce_memory_limit(retired);
    begin = end;
  }
}

std::unordered_set<std::string> Engine::forget_requests(std::span<const std::uint32_t> name_spaces,
                                                        const std::optional<std::string>& group,
                                                        const std::unordered_set<std::string>& labels) {
  Storage& s = *storage_;
  Retired retired;
  std::unordered_set<std::string> found;
  const auto forget = [&](SessionEntry& entry) {
    const RequestOptions& options = entry.session.options();
    const std::string& history = options.share == Share::kGroup ? options.group : kOwnHistory;
    const bool named = std::find(name_spaces.begin(), name_spaces.end(), entry.name_space) != name_spaces.end();
    if (!named || (group && *group != history) || !labels.contains(entry.label)) return;
    entry.forgotten = true;
    found.insert(entry.label);
    if (entry.flown.tokens > 0) s.find_history(entry.shares_into())->flight().leave(entry);
  };
  const std::scoped_lock guard(s.lock);
  for (auto& [incarnation, verifier] : s.verifiers) {
    for (auto& [request, entry] : verifier->sessions) forget(*entry);
  }
  for (Job& job : s.jobs) {
    if (job.closed) forget(*job.closed);
  }
  // What is dead may be of them, or of requests that were closed before.
  for (const std::uint32_t name_space : name_spaces) {
    if (name_space >= s.namespaces.size()) continue;
    const auto purge = [&](const std::string& name, History& history) {
      if ((!group || *group == name) && history.flight().dead_tokens() > 0) s.begin_anew(history, retired);
    };
    s.kept.forget(name_space, retired.text);
    NamespaceState& home = *s.namespaces[name_space];
    s.take_away(home);
    purge(kOwnHistory, home.history);
    for (auto& [name, of_group] : home.groups) purge(name, of_group.history);
  }
  return found;
}

}  // namespace draftd
