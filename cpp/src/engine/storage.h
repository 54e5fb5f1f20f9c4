// What the engine holds. One lock guards all of it: steps take it for one
// batch, the indexing thread for one slice of text, each in turn.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "draftd/drafting.h"
#include "draftd/engine.h"
#include "engine/history.h"
#include "engine/indexing.h"
#include "support/fair_lock.h"

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

struct NamespaceState {
  explicit NamespaceState(std::size_t history_limit) : history(history_limit) {}

  History history;
  double last_used = 0;
  std::map<std::string, GroupHistory> groups;
  std::map<std::uint32_t, std::shared_ptr<const Index>> corpora;
};

struct SessionEntry {
  Session session;
  std::uint32_t name_space;
  double last_used;
  std::size_t bytes = 0;  // as last accounted
  bool queued = false;    // a job to index its text is in the queue
};

struct Verifier {
  double last_seen;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<SessionEntry>> sessions;
};

// Index a session's own text, or, with `closed`, share what it leaves behind.
struct Job {
  std::uint64_t verifier;
  std::uint32_t request;
  std::uint32_t epoch;
  std::unique_ptr<SessionEntry> closed;
  std::size_t shared = 0;  // tokens already shared
};

// What is on its way out: freed after the lock, not under it.
struct Retired {
  std::vector<std::unique_ptr<SessionEntry>> sessions;
  std::vector<Index> indexes;
};

struct Engine::Storage {
  explicit Storage(EngineLimits given) : limits(given) {}

  const EngineLimits limits;
  mutable FairLock lock;
  std::vector<std::unique_ptr<NamespaceState>> namespaces;
  boost::unordered_flat_map<std::uint64_t, Verifier> verifiers;
  std::deque<Job> jobs;
  IndexingProgress progress;
  EngineStatistics statistics;
  std::size_t session_bytes = 0;  // closed ones too, until they are shared
  std::size_t history_bytes = 0;
  std::thread indexing_thread;

  // Buffers of step(), kept from step to step.
  Drafter drafter;
  std::vector<SessionEntry*> rows;
  std::vector<DraftSource> sources;
  std::vector<DraftWish> wishes;
  std::vector<Reason> reasons;

  // sessions.cpp
  SessionEntry* find(std::uint64_t verifier, std::uint32_t request);
  void index_inline(std::uint64_t verifier, std::uint32_t request, SessionEntry& entry);
  void account(SessionEntry& entry);
  // Takes a session out; its bytes count until it is retired.
  static std::unique_ptr<SessionEntry> take(Verifier& verifier, std::uint32_t request);
  void retire(std::unique_ptr<SessionEntry> entry, Retired& retired);

  // memory.cpp
  void enforce_memory_limit(Retired& retired);
  bool evict_one(Retired& retired);

  // step.cpp
  Session::Commit commit_row(std::uint64_t verifier, const StepColumns& step, std::size_t row, double now);
  void wish_for(SessionEntry& entry, std::uint32_t nodes, double now);
  void write_tail(SessionEntry* entry, std::size_t wish, Reason reason, TailColumns& tails);

  // upkeep.cpp
  std::size_t index_jobs(std::size_t most, Retired& retired);
  bool work(Job& job, std::size_t& most, Retired& retired);
  bool share(Job& job, std::size_t& most, Retired& retired);
  void run_indexing_thread();
};

}  // namespace draftd
