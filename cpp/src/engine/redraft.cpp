// A step's drafts once more, with what a draft source has; and the texts that it is shown.
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "engine/storage.h"
#include "support/ragged.h"

namespace draftd {

void Engine::redraft(std::uint64_t verifier, std::span<const std::uint32_t> request,
                     std::span<const std::uint32_t> epoch, const DraftedColumns& drafted, std::uint32_t budget,
                     double min_survival, const std::optional<StepCost>& cost, TailColumns& tails) {
  Storage& s = *storage_;
  const std::shared_lock guard(s.lock);
  Verifier* const known = s.find(verifier);
  const auto one_at_a_time = known == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(known->one_at_a_time);
  const Workbenches::Lent lent(s.benches);
  Workbench& bench = *lent;
  bench.begin_batch(request.size());
  const TailColumns before = std::exchange(tails, {});
  tails.status = before.status;
  tails.detail = before.detail;
  tails.allowed = before.allowed;
  tails.accepted = before.accepted;
  for (std::size_t row = 0; row < request.size(); ++row) {
    SessionEntry* entry = known == nullptr ? nullptr : known->find(request[row]);
    auto reason = static_cast<Reason>(before.reason[row]);
    if (before.status[row] != static_cast<std::uint8_t>(Status::kOk)) {
      entry = nullptr;
    } else if (entry == nullptr || entry->session.epoch() != epoch[row] ||
               entry->session.committed() != before.base[row]) {
      entry = nullptr;
      reason = Reason::kRefused;
      tails.status[row] = static_cast<std::uint8_t>(Status::kNeedSync);
      tails.allowed[row] = 0;
    } else if (before.allowed[row] > 0) {
      reason = Reason::kNotEmpty;
      s.wish_for(*entry, before.allowed[row], bench);
      bench.wishes.back().drafted = ragged(drafted.nodes, drafted.node_end, row);
    }
    bench.rows.push_back(entry);
    bench.reasons.push_back(reason);
  }
  Storage::draft(bench, budget, min_survival, cost, tails);
  const std::scoped_lock accounts(s.accounts);
  s.count_tails(before, -1);
  s.count_tails(tails, 1);
  for (std::size_t row = 0; row < request.size(); ++row) {
    if (tails.status[row] != before.status[row]) s.count_error(tails.status[row]);
    if (bench.rows[row] != nullptr) s.account(*bench.rows[row]);
  }
}

void Engine::texts(std::uint64_t verifier, std::span<const std::uint32_t> request, std::span<const std::uint32_t> epoch,
                   std::span<const std::uint32_t> start, std::vector<std::uint32_t>& token_end,
                   std::vector<Token>& tokens) {
  Storage& s = *storage_;
  const std::shared_lock guard(s.lock);
  Verifier* const known = s.find(verifier);
  const auto one_at_a_time = known == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(known->one_at_a_time);
  token_end.clear();
  tokens.clear();
  for (std::size_t row = 0; row < request.size(); ++row) {
    const SessionEntry* const entry = known == nullptr ? nullptr : known->find(request[row]);
    if (entry != nullptr && entry->session.epoch() == epoch[row] && entry->session.text().size() >= start[row]) {
      const std::span<const Token> text = entry->session.text().subspan(start[row]);
      tokens.insert(tokens.end(), text.begin(), text.end());
    }
    token_end.push_back(static_cast<std::uint32_t>(tokens.size()));
  }
}

}  // namespace draftd
