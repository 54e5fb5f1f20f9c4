#include "draftd/session.h"

#include <algorithm>
#include <utility>

namespace draftd {

namespace {

// The match of `text` in an index that has grown since it was `length` long.
// A match longer by any number is also longer by one; mostly none is.
Cursor longer_match(const Index& index, std::span<const Token> text, std::size_t length) {
  const Cursor probe = index.match(text.last(std::min(length + 1, text.size())));
  return probe.length <= length ? probe : index.match(text);
}

}  // namespace

std::optional<std::size_t> first_invalid(std::span<const Token> tokens, Token vocabulary) {
  const auto invalid = [=](Token token) { return token < 0 || token >= vocabulary; };
  const auto found = std::find_if(tokens.begin(), tokens.end(), invalid);
  if (found == tokens.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tokens.begin());
}

void Acceptance::add(const Acceptance& other) {
  const auto add_each = [](std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& more) {
    if (sum.size() < more.size()) sum.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
  };
  steps += other.steps;
  drafts += other.drafts;
  covered += other.covered;
  add_each(verified, other.verified);
  add_each(accepted, other.accepted);
}

void Acceptance::clear() {
  steps = drafts = covered = 0;
  verified.clear();
  accepted.clear();
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
  // A commit without new tokens is a repetition, or asks for a draft only.
  const bool names_tail = verified.tail_base != Verified::kNoTail && !fresh.empty();
  const bool used_tail = names_tail && !tail_.empty() && verified.tail_base == tail_base_ && start == tail_base_ &&
                         fresh.size() == tokens.size();
  // Without a draft, the first token of the output comes from prefill: nothing was verified.
  if (!fresh.empty() && !stopped() && (used_tail || tokens_.size() > prompt_)) {
    ++acceptance_.steps;
    ++unreported_.steps;
  }
  // What comes where the last draft was made tells of it, also when it was empty, or not the one that was used.
  const bool passed = !used_tail && !fresh.empty() && start == tail_base_ && fresh.size() == tokens.size();
  if (used_tail) result.accepted = observe(fresh, verified);
  if (passed) pass(fresh);
  if (!fresh.empty()) tail_base_ = Verified::kNoTail;
  result.lesson = (used_tail || passed) && !outcome_.lesson.end.empty();  // none where a preset drafted
  result.stale_tail = names_tail && !used_tail;
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
  tail_base_ = Verified::kNoTail;
}

// Of new tokens, those up to the first stop id and with it.
std::size_t Session::counted(std::span<const Token> tokens) const {
  const auto stop =
      std::find_first_of(tokens.begin(), tokens.end(), options_.stop_ids.begin(), options_.stop_ids.end());
  return static_cast<std::size_t>(stop - tokens.begin()) + (stop == tokens.end() ? 0 : 1);
}

// Follows the committed tokens through the last tail, of which nothing is known to have been verified.
void Session::pass(std::span<const Token> tokens) {
  outcome_.followed.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(counted(tokens)));
  outcome_.depths.resize(tail_.size());
  outcome_.fates.assign(tail_.size(), Outcome::Fate::kNotVerified);
  std::int32_t reached = -1;
  for (std::size_t node = 0; node < tail_.size(); ++node) {
    const std::int16_t parent = tail_[node].parent;
    const std::size_t depth = parent < 0 ? 1 : outcome_.depths[static_cast<std::size_t>(parent)] + std::size_t{1};
    outcome_.depths[node] = static_cast<std::uint16_t>(depth);
    if (parent != reached || depth > outcome_.followed.size() || tail_[node].token != outcome_.followed[depth - 1])
      continue;
    outcome_.fates[node] = Outcome::Fate::kPassed;
    reached = static_cast<std::int32_t>(node);
  }
}

// Follows the committed tokens from the root of the last tail through the
// nodes that went through the target.
std::int16_t Session::observe(std::span<const Token> tokens, const Verified& verified) {
  const auto went_through = [&](std::size_t node) {
    if (verified.nodes == Verified::kBitmap) return node < verified.bitmap.size() && verified.bitmap[node] != 0;
    return verified.nodes == Verified::kAll || std::cmp_less(node, verified.nodes);
  };
  const auto count_at = [](std::vector<std::uint64_t>& counts, std::size_t depth) {
    if (counts.size() < depth) counts.resize(depth);
    ++counts[depth - 1];
  };
  const std::size_t counted = this->counted(tokens);

  std::int32_t reached = -1;
  std::int16_t length = 0;
  bool any_verified = false;
  outcome_.depths.resize(tail_.size());
  outcome_.fates.assign(tail_.size(), Outcome::Fate::kNotVerified);
  outcome_.followed.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(counted));
  for (std::size_t node = 0; node < tail_.size(); ++node) {
    const std::int16_t parent = tail_[node].parent;
    const std::size_t depth = parent < 0 ? 1 : outcome_.depths[static_cast<std::size_t>(parent)] + std::size_t{1};
    outcome_.depths[node] = static_cast<std::uint16_t>(depth);
    if (!went_through(node)) continue;
    any_verified = true;
    const bool accepted = parent == reached && depth <= counted && tail_[node].token == tokens[depth - 1];
    outcome_.fates[node] = accepted ? Outcome::Fate::kAccepted : Outcome::Fate::kRejected;
    if (accepted) {
      reached = static_cast<std::int32_t>(node);
      length = static_cast<std::int16_t>(depth);
    }
    for (Acceptance* const sum : {&acceptance_, &unreported_}) {
      count_at(sum->verified, depth);
      if (accepted) count_at(sum->accepted, depth);
    }
  }
  for (Acceptance* const sum : {&acceptance_, &unreported_}) {
    ++sum->drafts;
    sum->covered += reached < 0 ? 0 : 1;
  }
  if (any_verified) rest_.outcome(length > 0);
  return length;
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

void Outcome::teach(Model& model) const {
  const std::size_t places = lesson.end.size();  // of the root and the nodes; none where a preset drafted
  if (places > 0 && !followed.empty()) model.learn(lesson.of(0), followed[0]);
  for (std::size_t node = 0; node + 1 < places; ++node) {
    const std::size_t depth = depths[node];
    const bool reached = fates[node] == Fate::kAccepted || fates[node] == Fate::kPassed;
    if (reached && depth < followed.size()) model.learn(lesson.of(node + 1), followed[depth]);
  }
  for (std::size_t node = 0; node < lesson.raw.size(); ++node) {
    const bool verified = fates[node] == Fate::kAccepted || fates[node] == Fate::kRejected;
    if (verified) model.learn_survival(lesson.raw[node], fates[node] == Fate::kAccepted);
  }
}

void Session::deliver(std::span<const DraftNode> tree, Lesson& lesson) {
  tail_.assign(tree.begin(), tree.end());
  std::swap(outcome_.lesson, lesson);
  tail_base_ = committed();
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
    place.cursor = longer_match(index, read.first(place.position), place.cursor.length);
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
         places_.capacity() * sizeof(Place) + reaches_.capacity() * sizeof(Reach) +
         tail_.capacity() * sizeof(DraftNode) + outcome_.memory_size();
}

}  // namespace draftd
