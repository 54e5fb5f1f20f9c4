// Sessions come and go; what they cost.
#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/storage.h"

namespace draftd {
namespace {

// An upper bound of what one token of a request costs, for the check at open.
constexpr std::size_t kBytesPerToken = 64;

}  // namespace

SessionEntry* Verifier::find(std::uint32_t request) const {
  const auto entry = sessions.find(request);
  return entry == sessions.end() ? nullptr : entry->second.get();
}

Verifier* Engine::Storage::find(std::uint64_t verifier) const {
  const auto known = verifiers.find(verifier);
  return known == verifiers.end() ? nullptr : known->second.get();
}

void Engine::Storage::index_inline(SessionEntry& entry, bool alone) {
  if (entry.queued) return;
  std::size_t most = kInlineTokens;
  const bool done = alone ? index_text(entry, most) : entry.session.index_text(most) == 0 && due(entry) == 0;
  if (!done) queue(entry);
}

bool Engine::Storage::index_text(SessionEntry& entry, std::size_t& most) {
  const std::size_t before = entry.session.unindexed();
  const std::size_t left = entry.session.index_text(most);
  most -= before - left;
  if (left == 0) feed(entry, most);
  return left == 0 && due(entry) == 0;
}

void Engine::Storage::queue(SessionEntry& entry) {
  if (std::exchange(entry.queued, true)) return;
  add({.verifier = entry.verifier, .request = entry.request, .epoch = entry.session.epoch(), .closed = nullptr});
}

void Engine::Storage::add(Job job) {
  const std::scoped_lock guard(accounts);
  jobs.push_back(std::move(job));
  progress.job_added();
}

void Engine::Storage::account(SessionEntry& entry) {
  session_bytes -= entry.bytes;
  session_tokens -= entry.tokens;
  entry.bytes = entry.session.memory_size() + entry.label.capacity();
  entry.tokens = entry.session.own_index().tokens();
  session_bytes += entry.bytes;
  session_tokens += entry.tokens;
}

std::unique_ptr<SessionEntry> Engine::Storage::take(Verifier& verifier, std::uint32_t request) {
  const auto found = verifier.sessions.find(request);
  std::unique_ptr<SessionEntry> entry = std::move(found->second);
  verifier.sessions.erase(found);
  const std::scoped_lock guard(accounts);
  session_tokens -= entry->tokens;
  --statistics.sessions;
  return entry;
}

void Engine::Storage::retire(std::unique_ptr<SessionEntry> entry, Retired& retired) {
  land(*entry, retired);
  session_bytes -= entry->bytes;
  retired.sessions.push_back(std::move(entry));
}

void Engine::Storage::keep_index(SessionEntry& entry, double now, Retired& retired) {
  if (entry.forgotten) return;
  kept.keep(entry.name_space, entry.session.give_index(), now, retired.text);
  const std::scoped_lock guard(accounts);
  session_bytes -= entry.bytes;
  entry.bytes = entry.session.memory_size() + entry.label.capacity();
  session_bytes += entry.bytes;
}

void Engine::Storage::take_over(SessionEntry& entry) {
  std::optional<OwnIndex> earlier = kept.take(entry.name_space, entry.session.text());
  if (!earlier) return;
  {
    const std::scoped_lock guard(accounts);
    statistics.taken_over_tokens += earlier->text().size();
  }
  entry.session.go_on_from(*std::move(earlier));
}

// Of a request that is opened anew: it leaves nothing behind.
void Engine::Storage::replace(std::unique_ptr<SessionEntry> entry, bool alone, Retired& retired) {
  if (alone) {
    retire(std::move(entry), retired);
    return;
  }
  entry->forgotten = true;
  add({.verifier = entry->verifier,
       .request = entry->request,
       .epoch = entry->session.epoch(),
       .closed = std::move(entry)});
}

std::pair<Status, std::uint32_t> Engine::open(const OpenRequest& request, double now) {
  Storage& s = *storage_;
  Retired retired;
  const std::size_t length = request.prompt.size() + request.output.size();
  const auto invalid_prompt = first_invalid(request.prompt, request.options.vocabulary);
  if (invalid_prompt) return {Status::kInvalidToken, static_cast<std::uint32_t>(*invalid_prompt)};
  const auto invalid_output = first_invalid(request.output, request.options.vocabulary);
  if (invalid_output) {
    return {Status::kInvalidToken, static_cast<std::uint32_t>(request.prompt.size() + *invalid_output)};
  }
  if (length * kBytesPerToken > s.limits.memory) return {Status::kLimitExceeded, static_cast<std::uint32_t>(length)};
  auto opened = std::make_unique<SessionEntry>(Session(request.epoch, request.options, request.prompt, request.output),
                                               request.verifier, request.request, request.name_space,
                                               std::string(request.label), now);
  opened->flown.until = request.prompt.size();

  Turn turn(s.lock);
  if (request.name_space >= s.namespaces.size()) throw std::out_of_range("open: no such namespace");
  if (s.find(request.verifier) == nullptr) {
    turn.insist();
    s.verifiers.try_emplace(request.verifier, std::make_unique<Verifier>());
  }
  {
    Verifier& verifier = *s.find(request.verifier);
    const std::scoped_lock one_at_a_time(verifier.one_at_a_time);
    verifier.last_seen = now;
    if (const SessionEntry* const before = verifier.find(request.request)) {
      if (before->session.epoch() > request.epoch) return {Status::kStaleEpoch, 0};
      opened->forgotten = before->forgotten && before->label == opened->label;
      std::unique_ptr<SessionEntry> replaced = s.take(verifier, request.request);
      s.keep_index(*replaced, now, retired);
      s.replace(std::move(replaced), turn.alone(), retired);
    }
    SessionEntry& entry = *(verifier.sessions[request.request] = std::move(opened));
    s.take_over(entry);
    s.index_inline(entry, turn.alone());
    const std::scoped_lock accounts(s.accounts);
    s.account(entry);
    ++s.statistics.sessions;
  }
  s.enforce_memory_limit(turn, retired);
  return {Status::kOk, 0};
}

Status Engine::close(std::uint64_t verifier, std::uint32_t request, std::uint32_t epoch, double now,
                     std::int64_t time) {
  Storage& s = *storage_;
  Retired retired;
  std::unique_ptr<SessionEntry> closed;
  const Turn turn(s.lock);
  Verifier* const known = s.find(verifier);
  const auto one_at_a_time = known == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(known->one_at_a_time);
  const SessionEntry* const entry = known == nullptr ? nullptr : known->find(request);
  if (entry == nullptr || entry->session.epoch() != epoch) {
    const std::scoped_lock accounts(s.accounts);
    ++s.statistics.ignored_closes;
    return entry != nullptr && entry->session.epoch() > epoch ? Status::kStaleEpoch : Status::kOk;
  }
  known->last_seen = now;
  closed = s.take(*known, request);
  closed->last_used = now;

  const auto sum = [](const std::vector<std::uint64_t>& counts) {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) total += count;
    return static_cast<double>(total);
  };
  const Acceptance& acceptance = closed->session.acceptance();
  if (const double verified = sum(acceptance.verified); verified > 0) {
    const std::scoped_lock accounts(s.accounts);
    s.statistics.acceptance_of_requests += sum(acceptance.accepted) / verified;
    ++s.statistics.requests_measured;
  }
  s.keep_index(*closed, now, retired);
  // Shared or not, the indexing thread is the one to free it.
  s.add({.verifier = verifier, .request = request, .epoch = epoch, .closed = std::move(closed), .time = time});
  if (turn.alone()) s.land(*s.jobs.back().closed, retired);
  return Status::kOk;
}

std::size_t Engine::expire(double now) {
  Storage& s = *storage_;
  Retired retired;
  const std::scoped_lock guard(s.lock);
  const double oldest = now - s.limits.session_ttl;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> idle;
  for (const auto& [incarnation, verifier] : s.verifiers) {
    for (const auto& [request, entry] : verifier->sessions) {
      if (verifier->last_seen < oldest || entry->last_used < oldest) idle.emplace_back(incarnation, request);
    }
  }
  std::sort(idle.begin(), idle.end());  // what they leave to be done has an order, too
  for (const auto& [incarnation, request] : idle) s.retire(s.take(*s.find(incarnation), request), retired);
  boost::unordered::erase_if(s.verifiers, [&](const auto& known) { return known.second->last_seen < oldest; });
  s.kept.expire(oldest, retired.text);
  s.statistics.evicted_sessions += retired.sessions.size();
  return retired.sessions.size();
}

}  // namespace draftd
