// The engine's life: construction, corpora, indexing behind the steps, figures.
#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include "engine/storage.h"
#include "support/identity.h"

namespace draftd {
namespace {

// Sealed sources of a request beside the history's and the group's.
constexpr std::size_t kMaxCorpora = kMaxSources - 2;
// What it costs to learn from a draft, in tokens indexed.
constexpr std::size_t kTokensPerLesson = 16;

}  // namespace

Engine::Engine(EngineLimits limits, bool indexing_thread, std::span<const std::uint8_t> priors)
    : storage_(std::make_unique<Storage>(limits, priors.empty() ? std::make_unique<Model>() : Model::load(priors))) {
  // Parents of a tree are 16-bit indices.
  if (limits.max_nodes < 1 || limits.max_nodes > INT16_MAX) {
    throw std::invalid_argument("max_nodes is " + std::to_string(limits.max_nodes) + ", not in [1, 32767]");
  }
  if (!(limits.pace.long_run_factor >= 1.0)) {
    throw std::invalid_argument("long_run_factor is " + std::to_string(limits.pace.long_run_factor) +
                                ", not 1 or more");
  }
  if (indexing_thread) storage_->indexing_thread = std::thread([this] { storage_->run_indexing_thread(); });
}

Engine::~Engine() { stop_indexing(); }

void Engine::stop_indexing() {
  storage_->progress.stop();
  if (storage_->indexing_thread.joinable()) storage_->indexing_thread.join();
}

std::uint32_t Engine::create_namespace() {
  Storage& s = *storage_;
  const std::scoped_lock guard(s.lock);
  s.namespaces.push_back(std::make_unique<NamespaceState>(s.limits.history));
  s.live_bytes += s.namespaces.back()->history.live_memory_size();
  return static_cast<std::uint32_t>(s.namespaces.size() - 1);
}

void Engine::publish_corpus(std::uint32_t name_space, std::uint32_t corpus, SegmentSet segments) {
  Storage& s = *storage_;
  Corpus published{std::make_shared<const SegmentSet>(std::move(segments)), next_identity()};
  const std::scoped_lock guard(s.lock);
  auto& corpora = s.namespaces.at(name_space)->corpora;
  if (corpora.size() == kMaxCorpora && !corpora.contains(corpus)) {
    throw std::length_error("a namespace holds at most " + std::to_string(kMaxCorpora) + " corpora");
  }
  std::swap(corpora[corpus], published);  // the one it replaces is freed after the lock
  if (published.segments != nullptr) s.take_away(*s.namespaces[name_space]);
}

void Engine::withdraw_corpus(std::uint32_t name_space, std::uint32_t corpus) {
  Storage& s = *storage_;
  Corpus withdrawn;
  const std::scoped_lock guard(s.lock);
  auto& corpora = s.namespaces.at(name_space)->corpora;
  if (const auto found = corpora.find(corpus); found != corpora.end()) {
    withdrawn = std::move(found->second);
    corpora.erase(found);
    s.take_away(*s.namespaces[name_space]);
  }
}

std::uint64_t Engine::ticket() const { return storage_->progress.ticket(); }
bool Engine::indexed(std::uint64_t ticket) const { return storage_->progress.reached(ticket); }
bool Engine::wait_indexed(std::uint64_t ticket, double seconds) const {
  return storage_->progress.wait(ticket, seconds);
}
int Engine::progress_fd() { return storage_->progress.new_fd(); }

void Engine::Storage::run_indexing_thread() {
  while (progress.wait_for_job()) {
    Retired retired;
    std::size_t done = 0;
    {
      const std::scoped_lock guard(lock);
      done = index_jobs(kSliceTokens, retired);
    }
    if (done > 0) progress.jobs_done(done);
  }
}

std::size_t Engine::index_slice(std::size_t most) {
  Storage& s = *storage_;
  Retired retired;
  const std::scoped_lock guard(s.lock);
  s.progress.jobs_done(s.index_jobs(most, retired));
  return s.jobs.size();
}

// Works on the queue until `most` tokens are indexed; returns how many jobs it finished.
std::size_t Engine::Storage::index_jobs(std::size_t most, Retired& retired) {
  std::size_t done = 0;
  while (most > 0 && !jobs.empty() && work(jobs.front(), most, retired)) {
    if (jobs.front().closed) retire(std::move(jobs.front().closed), retired);
    jobs.pop_front();
    ++done;
  }
  enforce_memory_limit(retired);
  return done;
}

// Does up to `most` tokens of the job and takes them off; true when it is done.
bool Engine::Storage::work(Job& job, std::size_t& most, Retired& retired) {
  if (job.closed) return share(job, most, retired);
  if (job.outcome) {
    most -= std::min(most, kTokensPerLesson);
    NamespaceState& home = *namespaces[job.name_space];
    if (Model* const model = model_to_teach(home, home.last_used)) job.outcome->teach(*model);
    return true;
  }
  const Verifier* const verifier = find(job.verifier);
  SessionEntry* const entry = verifier == nullptr ? nullptr : verifier->find(job.request);
  if (entry == nullptr || entry->session.epoch() != job.epoch || !entry->queued) return true;
  if (std::exchange(entry->grounded, false)) land(*entry, retired);
  entry->queued = !index_text(*entry, most);
  account(*entry);
  return !entry->queued;
}

bool Engine::Storage::share(Job& job, std::size_t& most, Retired& retired) {
  land(*job.closed, retired);
  const Session& session = job.closed->session;
  const RequestOptions& options = session.options();
  const std::span<const Token> text = options.share == Share::kAll ? session.text() : session.output();
  if (!job.closed->shares() || text.empty()) return true;

  const HistoryKey key = job.closed->shares_into();
  if (job.closed->forgotten) {
    // What was shared of it before is a document: its label tells that it is to be deleted.
    if (History* const history = find_history(key)) {
      change(*history, [](History& changed) {
        changed.end_document();
        return 0;
      });
    }
    return true;
  }
  const std::span<const Token> slice = text.subspan(job.shared, std::min(most, text.size() - job.shared));
  job.shared += slice.size();
  most -= slice.size();
  const bool done = job.shared == text.size();
  change(history_of(key, job.closed->last_used), [&](History& history) {
    const std::size_t forgotten = history.append(slice, job.closed->label, job.time, retired.text);
    if (done) history.end_document();
    return forgotten;
  });
  return done;
}

// One hold of the lock for each history and each namespace: steps go between.
EngineStatistics Engine::statistics() const {
  const Storage& s = *storage_;
  EngineStatistics figures;
  std::size_t namespaces = 0;
  {
    const std::scoped_lock guard(s.lock);
    figures = s.statistics;
    namespaces = s.namespaces.size();
    figures.verifiers = s.verifiers.size();
    figures.own = {s.session_tokens, s.session_bytes};
    figures.kept = {s.kept.tokens(), s.kept.memory_size()};
    figures.learned_bytes = s.learned_bytes;
  }
  const auto add = [](EngineStatistics::Size& size, std::size_t tokens, std::size_t bytes) {
    size.tokens += tokens;
    size.bytes += bytes;
  };
  for (const HistoryKey& key : s.history_keys()) {
    const std::scoped_lock guard(s.lock);
    const History* const history = s.find_history(key);
    if (history == nullptr) continue;
    add(key.group.empty() ? figures.history : figures.group, history->tokens(), history->memory_size());
    add(figures.in_flight, history->flight().index().tokens(), history->flight().memory_size());
  }
  for (std::size_t name_space = 0; name_space < namespaces; ++name_space) {
    const std::scoped_lock guard(s.lock);
    for (const auto& [number, corpus] : s.namespaces[name_space]->corpora) {
      for (const auto& segment : *corpus.segments) add(figures.corpus, segment->tokens(), segment->memory_size());
    }
  }
  return figures;
}

}  // namespace draftd
