// Why a draft would be made: drafts as a step does, for a request that is here
// for this call alone, and looks up what each text it reads knows of each node.
//
// Under the lock it takes what a step with one row takes, then one look at a
// node in a head that grows at a time. Everything else is held, and read after.
// Nothing is changed: no request is opened, no history is used, nothing learned.
#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/storage.h"
#include "engine/text_parts.h"

namespace draftd {
namespace {

// A source, from the newest part to the oldest.
struct HeldSource {
  TextSource source;
  std::vector<std::unique_ptr<TextPart>> parts;
};

// What is taken along under the lock.
struct Taken {
  struct Text {
    TextSource source;
    std::shared_ptr<const Index> flight = nullptr;  // grows under the lock, as the next
    std::shared_ptr<const Head> newer = nullptr;
    std::shared_ptr<const Head> older = nullptr;
    std::shared_ptr<const SegmentSet> segments = nullptr;
  };

  Reason reason = Reason::kNotEmpty;
  std::vector<DraftNode> tree;
  std::vector<Text> texts;
  std::vector<FrequentToken> fill;
  std::uint64_t fill_total = 0;
};

HeldSource held(const Taken::Text& text, std::span<const DraftNode> tree, TurnLock& lock) {
  HeldSource source{text.source, {}};
  if (text.flight != nullptr) source.parts.push_back(std::make_unique<LivePart>(text.flight, lock));
  if (text.newer != nullptr) source.parts.push_back(std::make_unique<LivePart>(text.newer, &lock));
  if (text.older != nullptr) source.parts.push_back(std::make_unique<LivePart>(text.older, nullptr));
  for (std::size_t i = text.segments == nullptr ? 0 : text.segments->size(); i-- > 0;) {
    source.parts.push_back(std::make_unique<SealedPart>((*text.segments)[i], tree));
  }
  return source;
}

ReadSource figures_of(const HeldSource& source) {
  ReadSource read{source.source, 0, 0};
  for (const auto& part : source.parts) {
    read.tokens += part->tokens();
    read.documents += part->documents();
  }
  return read;
}

// What a source as a whole knows of a node; nothing if it never stood behind any of the context.
std::optional<Evidence> evidence_of(const HeldSource& source, const Continued& node) {
  Evidence evidence{source.source, 0, 0, 0, std::nullopt};
  for (const auto& part : source.parts) evidence.length = std::max(evidence.length, part->longest(node));
  if (evidence.length == 0) return std::nullopt;
  for (const auto& part : source.parts) {
    Followed followed = part->followed(node, evidence.length);
    evidence.count += followed.count;
    evidence.total += followed.total;
    if (!evidence.last) evidence.last = std::move(followed.last);
  }
  return evidence;
}

// The end of the text and the path to each node, the node's own token last.
std::vector<std::vector<Token>> ways_to(std::span<const DraftNode> tree, std::span<const Token> text) {
  const std::span<const Token> end = text.last(std::min<std::size_t>(text.size(), kMaxMatch));
  std::vector<std::vector<Token>> ways;
  for (const DraftNode& node : tree) {
    std::vector<Token> way =
        node.parent < 0 ? std::vector<Token>(end.begin(), end.end()) : ways[static_cast<std::size_t>(node.parent)];
    way.push_back(node.token);
    ways.push_back(std::move(way));
  }
  return ways;
}

Continued continued(std::span<const Token> way) {
  const std::span<const Token> both = way.last(std::min<std::size_t>(way.size(), kMaxMatch + 1));
  return {both.first(both.size() - 1), both.back(), both};
}

std::optional<Evidence> fill_evidence(const Taken& taken, Token token) {
  const auto found = std::ranges::find(taken.fill, token, &FrequentToken::token);
  if (found == taken.fill.end()) return std::nullopt;
  return Evidence{{Source::kFill}, 0, found->count, taken.fill_total, std::nullopt};
}

// `first`: position of the first one in prompt and output.
void check(std::span<const Token> tokens, std::size_t first, Token vocabulary) {
  if (const auto invalid = first_invalid(tokens, vocabulary)) {
    throw std::invalid_argument("token " + std::to_string(first + *invalid) + " is " +
                                std::to_string(tokens[*invalid]) + ", outside [0, " + std::to_string(vocabulary) + ")");
  }
}

}  // namespace

Explanation Engine::explain(std::uint32_t name_space, const RequestOptions& options, std::span<const Token> prompt,
                            std::span<const Token> output) {
  Storage& s = *storage_;
  check(prompt, 0, options.vocabulary);
  check(output, prompt.size(), options.vocabulary);
  SessionEntry entry{Session(0, options, prompt, output), 0, 0, name_space, {}, 0.0};
  entry.session.index_text(SIZE_MAX);

  Taken taken;
  {
    const std::scoped_lock guard(s.lock);
    const Workbenches::Lent lent(s.benches);
    Workbench& bench = *lent;
    const NamespaceState& home = *s.namespaces.at(name_space);
    bench.begin_batch(1);
    const Session::Allowance allowed = entry.session.allowance(s.limits.max_nodes);
    taken.reason = allowed.reason;
    if (allowed.reason == Reason::kNotEmpty) {
      s.wish_for(entry, allowed.nodes, bench);
      bench.judge_fits();
      bench.drafter.draft(bench.wishes, allowed.nodes, 0.0);
      taken.tree.assign(bench.drafter.tree(0).begin(), bench.drafter.tree(0).end());
      if (taken.tree.empty()) taken.reason = bench.drafter.empty_because(0);
      const Fill& fill = bench.wishes[0].fill;
      taken.fill.assign(fill.tokens.begin(), fill.tokens.end());
      taken.fill_total = fill.total;
    }
    home.each_history(entry.session.options(), [&](const History& history, Source kind) {
      taken.texts.push_back({.source = {kind},
                             .newer = history.newer_head(),
                             .older = history.older_head(),
                             .segments = history.segments()});
      if (history.flight().has_others(entry)) {
        taken.texts.push_back({.source = {kind, 0, true}, .flight = history.flight().held_index()});
      }
    });
    home.each_corpus(entry.session.options(), [&](std::uint32_t number, const Corpus& corpus) {
      taken.texts.push_back({.source = {Source::kCorpus, number}, .segments = corpus.segments});
    });
  }

  std::vector<HeldSource> sources;
  sources.push_back({{Source::kOwnText}, {}});
  sources[0].parts.push_back(std::make_unique<LivePart>(entry.session.own_index()));
  for (const Taken::Text& taken_text : taken.texts) sources.push_back(held(taken_text, taken.tree, s.lock));

  Explanation explanation;
  explanation.reason = taken.reason;
  for (const HeldSource& source : sources) explanation.sources.push_back(figures_of(source));
  const std::vector<std::vector<Token>> ways = ways_to(taken.tree, entry.session.text());
  for (std::size_t i = 0; i < taken.tree.size(); ++i) {
    ExplainedNode node{taken.tree[i], {}};
    for (const HeldSource& source : sources) {
      if (auto evidence = evidence_of(source, continued(ways[i]))) node.evidence.push_back(*std::move(evidence));
    }
    std::ranges::stable_sort(node.evidence, std::ranges::greater(), &Evidence::length);
    if (node.node.source == Source::kFill) {
      if (auto evidence = fill_evidence(taken, node.node.token)) node.evidence.push_back(*std::move(evidence));
    }
    explanation.nodes.push_back(std::move(node));
  }
  return explanation;
}

}  // namespace draftd
