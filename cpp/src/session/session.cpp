#include "draftd/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "automaton/renewal.h"

namespace draftd {

std::optional<std::size_t> first_invalid(std::span<const Token> tokens, Token vocabulary) {
  const auto invalid = [=](Token token) { return token < 0 || token >= vocabulary; };
  const auto found = std::find_if(tokens.begin(), tokens.end(), invalid);
  if (found == tokens.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tokens.begin());
}

Session::Session(std::uint32_t epoch, RequestOptions options, std::span<const Token> prompt,
                 std::span<const Token> output)
    : epoch_(epoch), options_(std::move(options)), tokens_(prompt.begin(), prompt.end()), prompt_(prompt.size()) {
  if (options_.corpora) {
    auto& named = *options_.corpora;  // in the order of "all", each once
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
  }
  append(output);
}

Session::Commit Session::commit(std::uint32_t start, std::span<const Token> tokens, const Verified& verified) {
  if (const auto invalid = first_invalid(tokens, options_.vocabulary)) {
    return {Status::kInvalidToken, static_cast<std::uint32_t>(*invalid)};
  }
  if (start > committed()) return {Status::kNeedSync};

  const std::size_t overlap = std::min<std::size_t>(tokens.size(), committed() - start);
  const auto differs =
      std::mismatch(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(overlap), tokens_.begin() + start);
  const auto agreed = static_cast<std::size_t>(differs.first - tokens.begin());
  Commit result;
  if (agreed < overlap) {
    if (start + agreed < prompt_) return {Status::kNeedSync};
    result.kept = start + static_cast<std::uint32_t>(agreed);
    cut(result.kept);
  }
  const std::span<const Token> fresh = tokens.subspan(agreed);
  if (fresh.empty()) return result;  // a repetition, or a wish for a draft only

  if (start == tail_.base) {
    result.accepted = observe(fresh.first(counted(fresh)), verified);
    result.lesson = !outcome_.empty();
  }
  const bool used_tail = result.accepted != kNoOutcome;
  result.stale_tail = verified.tail_base != Verified::kNoTail && !used_tail;
  // Without a draft, the first token of the output comes from prefill: nothing was verified.
  if (!stopped() && (used_tail || tokens_.size() > prompt_)) {
    ++acceptance_.steps;
    ++unreported_.steps;
  }
  std::swap(tail_, earlier_);
  tail_.base = Verified::kNoTail;
  append(fresh);
  return result;
}

void Session::append(std::span<const Token> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (stopped()) return;
  const auto& stops = options_.stop_ids;
  const auto fresh = tokens_.end() - static_cast<std::ptrdiff_t>(tokens.size());
  const auto stop = std::find_first_of(fresh, tokens_.end(), stops.begin(), stops.end());
  if (stop != tokens_.end()) stop_ = static_cast<std::size_t>(stop - tokens_.begin()) + 1;
}

// The verifier took back what follows `length`. An automaton only grows, so
// the own text is indexed anew; in slices, like any text.
void Session::cut(std::size_t length) {
  tokens_.resize(length);
  if (stopped() && stop_ > length) stop_ = kNotStopped;
  if (own_.text().size() > length) own_ = OwnIndex();
  places_.clear();
  reaches_.clear();
  tail_.base = Verified::kNoTail;
}

// Of new tokens, those up to the first stop id and with it.
std::size_t Session::counted(std::span<const Token> tokens) const {
  const auto stop =
      std::find_first_of(tokens.begin(), tokens.end(), options_.stop_ids.begin(), options_.stop_ids.end());
  return static_cast<std::size_t>(stop - tokens.begin()) + (stop == tokens.end() ? 0 : 1);
}

std::int16_t Session::observe(std::span<const Token> tokens, const Verified& verified) {
  outcome_.followed.assign(tokens.begin(), tokens.end());
  outcome_.path.clear();
  outcome_.judged.clear();
  const auto is_used = [&](const Tail& tail) { return verified.tail_base == tail.base && !tail.nodes.empty(); };
  if (is_used(tail_)) {
    tail_.follow(tokens, verified, outcome_.path);
    count(tail_, outcome_.path, 0, verified);
    return static_cast<std::int16_t>(outcome_.path.size());
  }
  // What comes where the last draft was made tells of it, also when it was empty, or not the one that was used.
  tail_.follow(tokens, {}, outcome_.path);
  if (verified.tail_base == Verified::kNoTail || !is_used(earlier_)) return kNoOutcome;

  // An engine that steps ahead verifies what is left of a draft behind the tokens committed since.
  const std::span<const Token> since = std::span(tokens_).subspan(earlier_.base);
  earlier_path_.clear();
  earlier_.follow(since, {}, earlier_path_);
  if (earlier_path_.size() == since.size()) {
    earlier_.follow(tokens, verified, earlier_path_);
    count(earlier_, earlier_path_, since.size(), verified);
  }
  return static_cast<std::int16_t>(earlier_path_.size());
}

void Session::count(const Tail& tail, std::span<const std::uint16_t> path, std::size_t passed,
                    const Verified& verified) {
  constexpr double kLeastSurvival = std::numeric_limits<double>::min();  // a long path's may be no more than 0
  const auto count_at = [](std::vector<std::uint64_t>& counts, std::size_t depth) {
    if (counts.size() < depth) counts.resize(depth);
    ++counts[depth - 1];
  };
  const std::int32_t root = passed == 0 ? -1 : path[passed - 1];
  const bool learned = !tail.raw.empty();
  const double of_root = learned && root >= 0 ? std::max(tail.raw[root], kLeastSurvival) : 1.0;
  bool any_verified = false;
  depths_.assign(tail.nodes.size(), 0);  // below the root; 0: not below it
  for (std::size_t node = 0; node < tail.nodes.size(); ++node) {
    const std::int16_t parent = tail.nodes[node].parent;
    const std::uint16_t above = parent < 0 ? 0 : depths_[static_cast<std::size_t>(parent)];
    if (parent != root && above == 0) continue;
    const std::size_t depth = depths_[node] = above + 1;
    if (!verified.went_through(node)) continue;
    any_verified = true;
    const bool accepted = passed + depth <= path.size() && path[passed + depth - 1] == node;
    if (learned) outcome_.judged.push_back({tail.raw[node] / of_root, accepted});
    for (Acceptance* const sum : {&acceptance_, &unreported_}) {
      count_at(sum->verified, depth);
      if (accepted) count_at(sum->accepted, depth);
    }
  }
  if (!any_verified) return;
  const bool covered = path.size() > passed;
  for (Acceptance* const sum : {&acceptance_, &unreported_}) {
    ++sum->drafts;
    sum->covered += covered ? 1 : 0;
  }
  rest_.outcome(covered);
}

Session::Allowance Session::paced_allowance(std::uint32_t asked, std::uint32_t most_nodes, const PaceRules& rules) {
  const bool long_run = tokens_.size() - prompt_ > rules.long_run_tokens;
  const double paced = long_run ? most_nodes * rules.long_run_factor : most_nodes;
  const Allowance allowed = allowance(static_cast<std::uint32_t>(std::min<double>(asked, paced)));
  if (allowed.nodes > 0 && rest_.now(rules.rest)) return {0, Reason::kResting};
  return allowed;
}

Session::Allowance Session::allowance(std::uint32_t asked) const {
  if (asked == 0) return {0, Reason::kNotAsked};
  if (stopped()) return {0, Reason::kStopped};
  std::uint32_t nodes = std::min(asked, options_.max_nodes);
  if (options_.max_new_tokens) {
    const std::size_t output_length = tokens_.size() - prompt_;
    // The last token allowed comes from the verifier itself.
    const std::size_t used = output_length + 1;
    if (used >= *options_.max_new_tokens) return {0, Reason::kLengthLimit};
    nodes = static_cast<std::uint32_t>(std::min<std::size_t>(nodes, *options_.max_new_tokens - used));
  }
  return {nodes, Reason::kNotEmpty};
}

void Session::deliver(std::span<const DraftNode> tree, Lesson& lesson) {
  tail_.base = committed();
  tail_.nodes.assign(tree.begin(), tree.end());
  tail_.raw.assign(lesson.raw.begin(), lesson.raw.end());
  std::swap(outcome_.lesson, lesson);
}

std::size_t Session::index_text(std::size_t most) {
  const std::span<const Token> pending = text().subspan(own_.text().size());
  const std::span<const Token> slice = pending.first(std::min(most, pending.size()));
  own_.pairs.add_text(own_.index.text().back(), slice);  // the separator before the text is no token
  own_.index.append(slice);
  return pending.size() - slice.size();
}

Cursor Session::own_cursor() const { return unindexed() == 0 ? own_.index.tail() : own_.index.match(text()); }

Session::Place& Session::place_in(const Index& index) {
  auto place =
      std::find_if(places_.begin(), places_.end(), [&](const Place& known) { return known.index == index.identity(); });
  if (place != places_.end()) return *place;
  // As many as one draft may ask for; the first comer makes room.
  if (places_.size() == kMaxSources) places_.erase(places_.begin());
  return places_.emplace_back(Place{index.identity(), index.version(), 0, {}});
}

Cursor Session::cursor_in(const Index& index) {
  const std::span<const Token> read = text();
  Place& place = place_in(index);
  if (read.size() - place.position > kMaxMatch) {
    place.position = read.size() - kMaxMatch;
    place.cursor = {};
  } else if (place.version != index.version()) {
    place.cursor = renewed(index, place.cursor, read.first(place.position), place.version);
  }
  place.version = index.version();
  for (; place.position < read.size(); ++place.position)
    place.cursor = index.advance(place.cursor, read[place.position]);
  return place.cursor;
}

std::span<Reach> Session::reaches(std::span<const std::uint64_t> corpora) {
  const auto is_of = [](const Reach& reach, std::uint64_t corpus) { return reach.corpus() == corpus; };
  if (!std::equal(reaches_.begin(), reaches_.end(), corpora.begin(), corpora.end(), is_of)) {
    std::vector<Reach> wanted;
    wanted.reserve(corpora.size());
    for (const std::uint64_t corpus : corpora) {
      const auto known =
          std::find_if(reaches_.begin(), reaches_.end(), [&](const Reach& reach) { return reach.corpus() == corpus; });
      wanted.push_back(known != reaches_.end() ? *known : Reach(corpus));
    }
    reaches_.swap(wanted);
  }
  return reaches_;
}

void Session::report(Acceptance& total) {
  total.add(unreported_);
  unreported_.clear();
}

std::size_t Session::memory_size() const {
  return sizeof(Session) + tokens_.capacity() * sizeof(Token) + own_.memory_size() +
         places_.capacity() * sizeof(Place) + reaches_.capacity() * sizeof(Reach) + tail_.memory_size() +
         earlier_.memory_size() + outcome_.memory_size() +
         (earlier_path_.capacity() + depths_.capacity()) * sizeof(std::uint16_t);
}

}  // namespace draftd
