// One step of a verifier: take what it committed, draft what comes next.
#include <algorithm>
#include <array>
#include <mutex>

#include "engine/storage.h"

namespace draftd {
namespace {

// Row `row` of a ragged column.
template <typename T>
std::span<const T> ragged(std::span<const T> values, std::span<const std::uint32_t> end, std::size_t row) {
  const std::uint32_t first = row == 0 ? 0 : end[row - 1];
  return values.subspan(first, end[row] - first);
}

template <typename T>
void count(std::vector<T>& counts, std::size_t which, T more = 1) {
  if (counts.size() <= which) counts.resize(which + 1);
  counts[which] += more;
}

}  // namespace

void TailColumns::clear() {
  base.clear();
  status.clear();
  reason.clear();
  kind.clear();
  detail.clear();
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
  const std::scoped_lock guard(s.lock);
  s.begin_batch(step.request.size());
  if (const auto known = s.verifiers.find(verifier); known != s.verifiers.end()) known->second.last_seen = now;

  for (std::size_t row = 0; row < step.request.size(); ++row) {
    const Session::Commit commit = s.commit_row(verifier, step, row, now, retired);
    tails.status.push_back(static_cast<std::uint8_t>(commit.status));
    tails.detail.push_back(commit.position);
    tails.accepted.push_back(commit.accepted);
    s.statistics.stale_tails += commit.stale_tail ? 1 : 0;
  }
  std::uint32_t asked = 0;
  for (std::size_t row = 0; row < step.request.size(); ++row) {
    SessionEntry* const entry = s.rows[row];
    const std::uint32_t wanted = std::min<std::uint32_t>(step.max_nodes[row], s.limits.max_nodes);
    Session::Allowance allowed{0, Reason::kRefused};
    if (entry != nullptr) {
      allowed = step.most_nodes ? entry->session.paced_allowance(wanted, *step.most_nodes, s.limits.pace)
                                : entry->session.allowance(wanted);
    }
    s.reasons.push_back(allowed.reason);
    if (allowed.reason == Reason::kNotEmpty) {
      s.namespaces[entry->name_space]->mark_used(entry->session.options(), now);
      s.wish_for(*entry, allowed.nodes);
      asked += allowed.nodes;
    }
  }
  s.judge_fits();
  std::optional<StepCost> cost = step.cost;
  if (cost) cost->rows = static_cast<std::uint32_t>(step.request.size());
  s.drafter.draft(s.wishes, step.budget == 0 ? asked : step.budget, step.min_survival, cost ? &*cost : nullptr);

  std::size_t wish = 0;
  for (std::size_t row = 0; row < step.request.size(); ++row) {
    s.write_tail(s.rows[row], wish, s.reasons[row], tails);
    if (s.reasons[row] == Reason::kNotEmpty) ++wish;
  }
  s.enforce_memory_limit(retired);
}

Session::Commit Engine::Storage::commit_row(std::uint64_t verifier, const StepColumns& step, std::size_t row,
                                            double now, Retired& retired) {
  SessionEntry* const entry = find(verifier, step.request[row]);
  Session::Commit commit;
  if (entry == nullptr || step.epoch[row] > entry->session.epoch()) {
    commit.status = Status::kNeedSync;
  } else if (step.epoch[row] < entry->session.epoch()) {
    commit.status = Status::kStaleEpoch;
  } else {
    const Verified verified{
        step.tail_base[row], step.verified[row],
        step.bitmap_end.empty() ? std::span<const std::uint8_t>{} : ragged(step.bitmap, step.bitmap_end, row)};
    commit = entry->session.commit(step.start[row], ragged(step.tokens, step.token_end, row), verified);
  }
  const bool taken = commit.status == Status::kOk;
  if (taken) {
    entry->last_used = now;
    if (commit.lesson) {
      if (Model* const model = model_to_teach(*namespaces[entry->name_space], now)) entry->session.teach(*model);
    }
    if (commit.kept < entry->flown.until) land(*entry, retired);
    index_inline(*entry);
    entry->session.report(statistics.acceptance);
  } else {
    count(statistics.row_errors, static_cast<std::size_t>(commit.status), std::uint64_t{1});
  }
  rows.push_back(taken ? entry : nullptr);
  return commit;
}

void Engine::Storage::write_tail(SessionEntry* entry, std::size_t wish, Reason reason, TailColumns& tails) {
  std::span<const DraftNode> tree;
  no_lesson.clear();
  Lesson& lesson = reason == Reason::kNotEmpty ? drafter.lesson(wish) : no_lesson;
  if (reason == Reason::kNotEmpty) {
    tree = drafter.tree(wish);
    if (tree.empty()) reason = drafter.empty_because(wish);
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
  if (entry != nullptr) {
    entry->session.deliver(tree, lesson);
    account(*entry);
  }

  if (tree.empty()) {
    count(statistics.empty_tails, static_cast<std::size_t>(reason), std::uint64_t{1});
    return;
  }
  ++statistics.delivered_tails;
  std::array<std::uint16_t, INT16_MAX> depth;
  for (std::size_t node = 0; node < tree.size(); ++node) {
    const std::int16_t parent = tree[node].parent;
    depth[node] = parent < 0 ? 0 : depth[static_cast<std::size_t>(parent)] + 1;
    count(statistics.delivered, depth[node], std::uint64_t{1});
  }
}

}  // namespace draftd
