#include "engine/flight.h"

#include <algorithm>
#include <utility>

#include "engine/storage.h"

namespace draftd {

void Flight::add(SessionEntry& entry, std::span<const Token> piece, std::size_t until) {
  if (std::find(aboard_.begin(), aboard_.end(), &entry) == aboard_.end()) aboard_.push_back(&entry);
  index_->append(piece);
  index_->end_document();
  living_ += piece.size();
  entry.flown = {until, entry.flown.tokens + piece.size()};
}

void Flight::leave(SessionEntry& entry) {
  living_ -= entry.flown.tokens;
  entry.flown.tokens = 0;
  std::erase(aboard_, &entry);
}

std::vector<SessionEntry*> Flight::empty(Freed& freed) {
  freed.push_back(std::exchange(index_, std::make_shared<Index>()));
  living_ = 0;
  for (SessionEntry* const entry : aboard_) entry->flown.tokens = 0;
  return std::exchange(aboard_, {});
}

bool Flight::has_others(const SessionEntry& entry) const {
  return aboard_.size() > 1 || (aboard_.size() == 1 && aboard_[0] != &entry);
}

std::size_t Engine::Storage::due(const SessionEntry& entry) const {
  if (!limits.in_flight || entry.forgotten || entry.grounded || !entry.shares()) return 0;
  const std::size_t fresh = entry.session.text().size() - entry.flown.until;
  return fresh < Flight::kPiece ? 0 : fresh;
}

void Engine::Storage::feed(SessionEntry& entry, std::size_t& most) {
  const std::size_t fresh = std::min(most, due(entry));
  if (fresh == 0) return;
  most -= fresh;
  const Session& session = entry.session;
  const std::size_t first = session.options().share == Share::kAll ? 0 : session.prompt_length();
  const std::size_t before = std::min(Flight::kOverlap, entry.flown.until - first);
  const std::span<const Token> piece = session.text().subspan(entry.flown.until - before, before + fresh);
  change(history_of(entry.shares_into(), entry.last_used), [&](History& history) {
    history.flight().add(entry, piece, entry.flown.until + fresh);
    return 0;
  });
}

void Engine::Storage::land(SessionEntry& entry, Retired& retired) {
  if (entry.flown.tokens > 0) {
    History& history = *find_history(entry.shares_into());
    history.flight().leave(entry);
    if (history.flight().is_mostly_dead()) begin_anew(history, retired);
  }
  entry.flown.until = entry.session.prompt_length();
}

void Engine::Storage::take_back(SessionEntry& entry, bool alone, Retired& retired) {
  if (alone) {
    land(entry, retired);
  } else {
    entry.grounded = true;
    queue(entry);
  }
}

void Engine::Storage::begin_anew(History& history, Retired& retired) {
  change(history, [&](History& changed) {
    for (SessionEntry* const entry : changed.flight().empty(retired.text)) {
      entry->flown.until = entry->session.prompt_length();
      queue(*entry);
    }
    return 0;
  });
}

}  // namespace draftd
