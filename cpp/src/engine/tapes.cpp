// Windows of text for verifiers that match by themselves.
#include <mutex>
#include <shared_mutex>

#include "engine/storage.h"

namespace draftd {

void Engine::tapes(std::uint64_t verifier, std::span<const std::uint32_t> request, std::span<const std::uint32_t> epoch,
                   std::uint32_t windows, std::uint64_t news, TapeColumns& tapes) {
  Storage& s = *storage_;
  tapes.clear();
  const std::shared_lock guard(s.lock);
  Verifier* const known = s.find(verifier);
  const auto one_at_a_time = known == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(known->one_at_a_time);
  const Workbenches::Lent lent(s.benches);
  TapeSelection& selection = (*lent).tape_selection;
  selection.clear(request.size());
  for (std::size_t row = 0; row < request.size(); ++row) {
    SessionEntry* const entry = known == nullptr ? nullptr : known->find(request[row]);
    const bool open = entry != nullptr && entry->session.epoch() == epoch[row] && !entry->session.stopped();
    selection.begin_row(open ? entry->session.options().vocabulary : 0);
    if (open) s.look_for_windows(*entry, selection);
  }
  selection.choose(windows, tapes);
  tapes.news = s.taken_away;
  if (news == s.taken_away || known == nullptr) return;
  if (news > s.taken_away) news = 0;  // of another life
  for (const auto& [handle, entry] : known->sessions) {
    if (s.namespaces[entry->name_space]->taken_away > news) s.state_what_is_read(*entry, tapes);
  }
}

// The order in which equally long matches are preferred is that of drafts.
void Engine::Storage::look_for_windows(SessionEntry& entry, TapeSelection& selection) const {
  Session& session = entry.session;
  const NamespaceState& home = *namespaces[entry.name_space];
  const std::uint32_t own = session.own_cursor().length;
  const TapeSource histories{0, home.taken_away};
  home.each_history(session.options(), [&](const History& history, Source) {
    for (const auto& head : {history.newer_head(), history.older_head()}) {
      const Index& index = head->index();
      if (index.tokens() > 0) selection.add(index, session.cursor_in(index), 0, histories);
    }
    // What matches no further than its own text may be its own.
    if (const Flight& flight = history.flight(); flight.has_others(entry)) {
      selection.add(flight.index(), session.cursor_in(flight.index()), own, histories);
    }
    if (!history.segments()->empty()) selection.add(*history.segments(), session.text(), histories);
  });
  home.each_corpus(session.options(), [&](std::uint32_t number, const Corpus& corpus) {
    selection.add(*corpus.segments, session.text(), {number, corpus.identity});
  });
}

void Engine::Storage::state_what_is_read(const SessionEntry& entry, TapeColumns& tapes) const {
  const NamespaceState& home = *namespaces[entry.name_space];
  const auto state = [&](std::uint32_t corpus, std::uint64_t version) {
    tapes.reader.push_back(entry.request);
    tapes.reader_epoch.push_back(entry.session.epoch());
    tapes.reads.push_back(corpus);
    tapes.reads_version.push_back(version);
  };
  state(0, home.taken_away);
  home.each_corpus(entry.session.options(),
                   [&](std::uint32_t number, const Corpus& corpus) { state(number, corpus.identity); });
}

}  // namespace draftd
