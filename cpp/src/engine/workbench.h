// What one step works with, kept from step to step: several may run at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "draftd/drafting.h"
#include "draftd/nearest.h"
#include "draftd/reach.h"
#include "engine/tape_selection.h"

namespace draftd {

struct SessionEntry;

// A corpus of one request in a step, while it is judged how well it fits.
struct Fit {
  SealedSource* source;
  const Reach* reach;
  std::uint32_t corpora;     // that follow, this one included, of the same request
  std::uint32_t live_match;  // longest match of that request's live text
};

struct Workbench {
  explicit Workbench(Crew* crew) : drafter(crew) {}

  Drafter drafter;
  std::vector<SessionEntry*> rows;
  std::vector<LiveSource> live;
  std::vector<SealedSource> sealed;
  std::vector<PairsSource> pairs;
  std::vector<DraftWish> wishes;
  std::vector<Fit> fits;
  NearestSearch fit_search;
  std::vector<Reason> reasons;
  std::uint64_t stale_tails = 0;
  bool accompanied = false;
  Lesson no_lesson;  // of a row that wants no draft
  TapeSelection tape_selection;

  // wishes.cpp
  void begin_batch(std::size_t requests);
  // After the last wish, before drafting.
  void judge_fits();
};

// As many as there ever were steps at once.
class Workbenches {
 public:
  explicit Workbenches(Crew* crew) : crew_(crew) {}

  class Lent {
   public:
    explicit Lent(Workbenches& from) : from_(from), bench_(from.take()) {}
    ~Lent() { from_.give_back(std::move(bench_)); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    Workbench& operator*() const { return *bench_; }

   private:
    Workbenches& from_;
    std::unique_ptr<Workbench> bench_;
  };

 private:
  std::unique_ptr<Workbench> take() {
    const std::scoped_lock guard(mutex_);
    if (idle_.empty()) return std::make_unique<Workbench>(crew_);
    std::unique_ptr<Workbench> bench = std::move(idle_.back());
    idle_.pop_back();
    return bench;
  }
  void give_back(std::unique_ptr<Workbench> bench) {
    const std::scoped_lock guard(mutex_);
    idle_.push_back(std::move(bench));
  }

  Crew* const crew_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workbench>> idle_;
};

}  // namespace draftd
