// One step of a verifier: take what it committed, draft what comes next.
#include <algorithm>
#include <array>
#include <mutex>

#include "engine/storage.h"
#include "support/ragged.h"

namespace draftd {
namespace {

void count(std::vector<std::uint64_t>& counts, std::size_t which, std::int64_t more) {
  if (counts.size() <= which) counts.resize(which + 1);
  counts[which] += static_cast<std::uint64_t>(more);
}

// Of one row; `wish` is the number of its wish, where it has one.
void write_tail(Workbench& bench, std::size_t row, std::size_t wish, TailColumns& tails) {
  SessionEntry* const entry = bench.rows[row];
  Reason reason = bench.reasons[row];
  std::span<const DraftNode> tree;
  bench.no_lesson.clear();
  Lesson& lesson = reason == Reason::kNotEmpty ? bench.drafter.lesson(wish) : bench.no_lesson;
  if (reason == Reason::kNotEmpty) {
    tree = bench.drafter.tree(wish);
    if (tree.empty()) reason = bench.drafter.empty_because(wish);
  }
  for (const DraftNode& node : tree) {
    tails.tokens.push_back(node.token);
    tails.parents.push_back(node.parent);
    tails.survival.push_back(node.survival);
    tails.source.push_back(static_cast<std::uint8_t>(node.source));
  }
  tails.node_end.push_back(static_cast<std::uint32_t>(tails.tokens.size()));
  tails.reason.push_back(static_cast<std::uint8_t>(reason));
  tails.base.push_back(entry == nullptr ? 0 : entry->session.committed());
  const bool chain = entry != nullptr && entry->session.options().chain;
  tails.kind.push_back(static_cast<std::uint8_t>(chain ? TailKind::kChain : TailKind::kTree));
  if (entry != nullptr) entry->session.deliver(tree, lesson);
}

}  // namespace

void TailColumns::clear() {
  base.clear();
  status.clear();
  reason.clear();
  kind.clear();
  detail.clear();
  allowed.clear();
  accepted.clear();
  node_end.clear();
  tokens.clear();
  parents.clear();
  survival.clear();
  source.clear();
}

void Engine::step(std::uint64_t verifier, const StepColumns& step, double now, TailColumns& tails) {
  Storage& s = *storage_;
  Retired retired;
  tails.clear();
  Turn turn(s.lock);
  {
    Verifier* const known = s.find(verifier);
    const auto one_at_a_time =
        known == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(known->one_at_a_time);
    if (known != nullptr) known->last_seen = now;
    const Workbenches::Lent lent(s.benches);
    Workbench& bench = *lent;
    bench.begin_batch(step.request.size());
    bench.accompanied = !turn.alone();

    for (std::size_t row = 0; row < step.request.size(); ++row) {
      SessionEntry* const entry = known == nullptr ? nullptr : known->find(step.request[row]);
      const Session::Commit commit = s.commit_row(entry, step, row, now, turn.alone(), retired);
      bench.rows.push_back(commit.status == Status::kOk ? entry : nullptr);
      bench.stale_tails += commit.stale_tail ? 1 : 0;
      tails.status.push_back(static_cast<std::uint8_t>(commit.status));
      tails.detail.push_back(commit.position);
      tails.accepted.push_back(commit.accepted);
    }
    turn.share();

    for (std::size_t row = 0; row < step.request.size(); ++row) {
      SessionEntry* const entry = bench.rows[row];
      const std::uint32_t wanted = std::min<std::uint32_t>(step.max_nodes[row], s.limits.max_nodes);
      Session::Allowance allowed{0, Reason::kRefused};
      if (entry != nullptr) {
        allowed = step.most_nodes ? entry->session.paced_allowance(wanted, *step.most_nodes, s.limits.pace)
                                  : entry->session.allowance(wanted);
      }
      bench.reasons.push_back(allowed.reason);
      tails.allowed.push_back(static_cast<std::uint16_t>(allowed.nodes));
      if (allowed.reason == Reason::kNotEmpty) s.wish_for(*entry, allowed.nodes, bench);
    }
    Storage::draft(bench, step.budget, step.min_survival, step.cost, tails);
    s.count_step(bench, tails, now);
  }
  s.enforce_memory_limit(turn, retired);
}

void Engine::Storage::draft(Workbench& bench, std::uint32_t budget, double min_survival, std::optional<StepCost> cost,
                            TailColumns& tails) {
  std::uint32_t asked = 0;
  for (const DraftWish& wish : bench.wishes) asked += wish.max_nodes;
  bench.judge_fits();
  if (cost) cost->rows = static_cast<std::uint32_t>(bench.rows.size());
  bench.drafter.draft(bench.wishes, budget == 0 ? asked : budget, min_survival, cost ? &*cost : nullptr);
  std::size_t wish = 0;
  for (std::size_t row = 0; row < bench.rows.size(); ++row) {
    const bool wished = bench.reasons[row] == Reason::kNotEmpty;
    write_tail(bench, row, wish, tails);
    if (wished) ++wish;
  }
}

Session::Commit Engine::Storage::commit_row(SessionEntry* entry, const StepColumns& step, std::size_t row, double now,
                                            bool alone, Retired& retired) {
  if (entry == nullptr || step.epoch[row] > entry->session.epoch()) return {.status = Status::kNeedSync};
  if (step.epoch[row] < entry->session.epoch()) return {.status = Status::kStaleEpoch};
  const Verified verified{
      step.tail_base[row], step.verified[row],
      step.bitmap_end.empty() ? std::span<const std::uint8_t>{} : ragged(step.bitmap, step.bitmap_end, row)};
  const Session::Commit commit =
      entry->session.commit(step.start[row], ragged(step.tokens, step.token_end, row), verified);
  if (commit.status != Status::kOk) return commit;
  entry->last_used = now;
  if (commit.lesson) teach(*entry, now, alone);
  if (commit.kept < entry->flown.until) take_back(*entry, alone, retired);
  index_inline(*entry, alone);
  return commit;
}

void Engine::Storage::count_step(const Workbench& bench, const TailColumns& tails, double now) {
  const std::scoped_lock guard(accounts);
  statistics.stale_tails += bench.stale_tails;
  statistics.accompanied_steps += bench.accompanied ? 1 : 0;
  for (std::size_t row = 0; row < bench.rows.size(); ++row) {
    SessionEntry* const entry = bench.rows[row];
    if (entry == nullptr) {
      count_error(tails.status[row]);
      continue;
    }
    entry->session.report(statistics.acceptance);
    if (bench.reasons[row] == Reason::kNotEmpty) {
      namespaces[entry->name_space]->mark_used(entry->session.options(), now);
    }
    account(*entry);
  }
  count_tails(tails, 1);
}

void Engine::Storage::count_error(std::uint8_t status) { count(statistics.row_errors, status, 1); }

void Engine::Storage::count_tails(const TailColumns& tails, std::int64_t times) {
  std::array<std::uint16_t, INT16_MAX> depth;
  for (std::size_t row = 0; row < tails.node_end.size(); ++row) {
    const std::span<const std::int16_t> parents = ragged(std::span(tails.parents), tails.node_end, row);
    if (parents.empty()) {
      count(statistics.empty_tails, tails.reason[row], times);
      continue;
    }
    statistics.delivered_tails += static_cast<std::uint64_t>(times);
    for (std::size_t node = 0; node < parents.size(); ++node) {
      depth[node] = parents[node] < 0 ? 0 : depth[static_cast<std::size_t>(parents[node])] + 1;
      count(statistics.delivered, depth[node], times);
    }
  }
}

}  // namespace draftd
