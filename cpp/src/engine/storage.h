// What the engine holds, and who may touch it when.
//
// One lock guards all of it, taken in turns. What verifiers send (opens, closes,
// steps) takes it alone if nobody is drafting, and lets others in as soon as it
// only reads. If somebody is drafting, it goes on in company: it changes what is
// its verifier's own, and leaves to the indexing thread what others draft from:
// lessons, flights, histories. So no verifier waits for another's drafts.
// Everyone else takes the lock alone, for a bounded time, and lets drafts go first.
// That holds for who only looks, too: a verifier among those would be in company,
// and its drafts would depend on when somebody looked.
//
// In company, a verifier's sessions are guarded by its own mutex, and `accounts`
// guards what is summed over all, and the queue of jobs. Order: lock, mutex of the
// verifier, accounts.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "draftd/drafting.h"
#include "draftd/engine.h"
#include "engine/history.h"
#include "engine/indexing.h"
#include "engine/kept_indexes.h"
#include "engine/learning.h"
#include "engine/workbench.h"
#include "support/crew.h"
#include "support/turn_lock.h"

namespace draftd {

// Tokens of one request that a step indexes itself; what is longer waits for
// the indexing thread, so that an opened prompt delays nobody's step.
inline constexpr std::size_t kInlineTokens = 256;
// Tokens the indexing thread does before it lets the next step in: about 50 us.
inline constexpr std::size_t kSliceTokens = 256;

struct GroupHistory {
  History history;
  double last_used;
};

struct Corpus {
  std::shared_ptr<const SegmentSet> segments;
  std::uint64_t identity;  // another one each time it is published
};

struct NamespaceState {
  explicit NamespaceState(std::size_t history_limit) : history(history_limit, History::kFirstGeneration) {}

  // What a request may read beside its own text, in the order in which equally
  // long contexts are preferred. Nothing else of a namespace reaches a draft.
  template <typename OnHistory>
  void each_history(const RequestOptions& options, const OnHistory& on_history) const {
    if (!options.reads_history) return;
    on_history(history, Source::kSharedHistory);
    const auto group = groups.find(options.group);
    if (group != groups.end()) on_history(group->second.history, Source::kGroupHistory);
  }
  template <typename OnCorpus>
  void each_corpus(const RequestOptions& options, const OnCorpus& on_corpus) const {
    if (!options.corpora) {
      for (const auto& [number, corpus] : corpora) on_corpus(number, corpus);
      return;
    }
    for (const std::uint32_t number : *options.corpora) {
      if (const auto corpus = corpora.find(number); corpus != corpora.end()) on_corpus(number, corpus->second);
    }
  }
  // The histories that such a request reads are used now.
  void mark_used(const RequestOptions& options, double now) {
    if (!options.reads_history) return;
    last_used = now;
    if (const auto group = groups.find(options.group); group != groups.end()) group->second.last_used = now;
  }

  History history;
  double last_used = 0;
  Learned learned;
  std::map<std::string, GroupHistory> groups;
  std::map<std::uint32_t, Corpus> corpora;
  std::uint64_t taken_away = 0;  // when text of it was taken away last, as counted by Storage
};

struct SessionEntry {
  bool shares() const {
    const RequestOptions& options = session.options();
    return options.share != Share::kNothing && (options.share != Share::kGroup || !options.group.empty());
  }
  // Of a request that shares: the history that it leaves its text to, and before that to its flight.
  HistoryKey shares_into() const {
    const RequestOptions& options = session.options();
    return {name_space, options.share == Share::kGroup ? options.group : std::string()};
  }

  Session session;
  std::uint64_t verifier;
  std::uint32_t request;
  std::uint32_t name_space;
  std::string label;  // of what it leaves behind
  double last_used;
  std::size_t bytes = 0;   // as last accounted
  std::size_t tokens = 0;  // of its index, as last accounted
  Flown flown = {};
  bool queued = false;     // a job to index its text is in the queue
  bool grounded = false;   // what is in flight of it is to be taken back, by that job
  bool forgotten = false;  // it leaves nothing behind
};

struct Verifier {
  SessionEntry* find(std::uint32_t request) const;

  std::mutex one_at_a_time;  // who answers a message of it in company
  double last_seen = 0;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<SessionEntry>> sessions;
};

// Index a session's own text and share it in flight; or, with `closed`, share what
// it leaves behind; or, with `outcome`, teach the model of the namespace.
struct Job {
  std::uint64_t verifier;
  std::uint32_t request;
  std::uint32_t epoch;
  std::unique_ptr<SessionEntry> closed;
  std::int64_t time = 0;   // when it was closed, unix seconds
  std::size_t shared = 0;  // tokens already shared
  std::uint32_t name_space = 0;
  std::unique_ptr<const Outcome> outcome = nullptr;
};

// What is on its way out: freed after the lock, not under it.
struct Retired {
  std::vector<std::unique_ptr<SessionEntry>> sessions;
  Freed text;
  std::vector<std::unique_ptr<Model>> models;
};

struct Engine::Storage {
  Storage(EngineLimits given, std::unique_ptr<const Model> start)
      : limits(given),
        start(std::move(start)),
        kept(given.memory / 4),
        crew(given.threads > 1 ? std::make_unique<Crew>(given.threads - 1) : nullptr),
        benches(crew.get()) {}

  const EngineLimits limits;
  const std::unique_ptr<const Model> start;  // of every namespace's learning
  mutable TurnLock lock;
  std::vector<std::unique_ptr<NamespaceState>> namespaces;
  boost::unordered_flat_map<std::uint64_t, std::unique_ptr<Verifier>> verifiers;
  mutable std::mutex accounts;
  std::deque<Job> jobs;
  KeptIndexes kept;  // at most a quarter of the memory, and the first to go
  IndexingProgress progress;
  EngineStatistics statistics;
  std::size_t session_bytes = 0;   // closed ones too, until they are shared
  std::size_t session_tokens = 0;  // of the indexes of open ones
  std::size_t live_bytes = 0;      // of the heads and flights of histories
  std::size_t learned_bytes = 0;   // of the models of namespaces
  // Of a new group's history: above those of all that were evicted, should it be one of them.
  std::uint64_t first_generation = History::kFirstGeneration;
  std::mutex draining;  // one at a time: a long document is drained in pieces
  std::thread indexing_thread;

  std::uint64_t taken_away = 0;      // how often text was, of any namespace
  const std::unique_ptr<Crew> crew;  // nullptr: of one thread
  Workbenches benches;

  // sessions.cpp
  Verifier* find(std::uint64_t verifier) const;
  // Of what a message brought; `alone`: with the lock alone.
  void index_inline(SessionEntry& entry, bool alone);
  void queue(SessionEntry& entry);
  void add(Job job);
  // Indexes up to `most` tokens of what a request has new, for itself and for the
  // flight, and takes them off; whether that was all.
  bool index_text(SessionEntry& entry, std::size_t& most);
  // With `accounts`, or the lock alone.
  void account(SessionEntry& entry);
  // Takes a session out; its bytes count until it is retired.
  std::unique_ptr<SessionEntry> take(Verifier& verifier, std::uint32_t request);
  void retire(std::unique_ptr<SessionEntry> entry, Retired& retired);
  // Keeps the index of a session that was taken out, unless it leaves nothing behind.
  void keep_index(SessionEntry& entry, double now, Retired& retired);
  // Goes on from the index of an earlier request whose text this one begins with.
  void take_over(SessionEntry& entry);
  void replace(std::unique_ptr<SessionEntry> entry, bool alone, Retired& retired);

  // histories.cpp
  std::deque<HistoryKey> history_keys() const;
  History* find_history(const HistoryKey& key) const;
  // A group's begins to exist when it is first named.
  History& history_of(const HistoryKey& key, double now);
  void drain(const HistoryKey& key, HistoryDocuments& slice, std::vector<HistoryDocuments>& drained);
  // Changes a history by a call that returns how many tokens it forgot to keep a limit.
  template <typename Change>
  void change(History& history, const Change& change) {
    live_bytes -= history.live_memory_size();
    statistics.forgotten_tokens += change(history);
    live_bytes += history.live_memory_size();
  }

  // flight.cpp
  // New tokens of a request that may go into the flight, if they are worth a piece.
  std::size_t due(const SessionEntry& entry) const;
  // Adds up to `most` of them and takes them off.
  void feed(SessionEntry& entry, std::size_t& most);
  // What is in flight of a request counts no more.
  void land(SessionEntry& entry, Retired& retired);
  // The same at once or, in company, behind the steps.
  void take_back(SessionEntry& entry, bool alone, Retired& retired);
  // Empties a flight and queues the requests that were in it.
  void begin_anew(History& history, Retired& retired);

  // learning.cpp
  // What drafts of the namespace are scored with.
  const Model& model_of(const NamespaceState& home) const;
  // The namespace's own model, from now on; null when nothing is to be learned.
  Model* model_to_teach(NamespaceState& home, double now);
  // What became of a session's tail, at once or, in company, behind the steps.
  void teach(SessionEntry& entry, double now, bool alone);
  // Returns the one before; either may be null.
  std::unique_ptr<Model> exchange_model(NamespaceState& home, std::unique_ptr<Model> model);

  // memory.cpp
  void enforce_memory_limit(Retired& retired);
  // Takes the lock alone if there is something to evict.
  void enforce_memory_limit(Turn& turn, Retired& retired);
  bool evict_one(Retired& retired);

  // step.cpp
  Session::Commit commit_row(SessionEntry* entry, const StepColumns& step, std::size_t row, double now, bool alone,
                             Retired& retired);
  void count_step(const Workbench& bench, const TailColumns& tails, double now);
  // What the wishes of the bench get, and every row of it is told.
  static void draft(Workbench& bench, std::uint32_t budget, double min_survival, std::optional<StepCost> cost,
                    TailColumns& tails);
  // With `accounts`, both. `times` -1: they were not delivered after all.
  void count_tails(const TailColumns& tails, std::int64_t times);
  void count_error(std::uint8_t status);

  // tapes.cpp
  // Text of the namespace goes: windows of it that verifiers have are to go, too.
  void take_away(NamespaceState& home) { home.taken_away = ++taken_away; }
  void look_for_windows(SessionEntry& entry, TapeSelection& selection) const;
  void state_what_is_read(const SessionEntry& entry, TapeColumns& tapes) const;

  // wishes.cpp
  void wish_for(SessionEntry& entry, std::uint32_t nodes, Workbench& bench) const;
  void read_corpora(SessionEntry& entry, std::uint32_t live_match, Workbench& bench) const;

  // upkeep.cpp
  std::size_t index_jobs(std::size_t most, Retired& retired);
  bool work(Job& job, std::size_t& most, Retired& retired);
  bool share(Job& job, std::size_t& most, Retired& retired);
  void run_indexing_thread();
};

}  // namespace draftd
