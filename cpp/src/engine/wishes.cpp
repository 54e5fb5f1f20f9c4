// What a request may draft from, and how far each of it is trusted.
#include <algorithm>
#include <array>
#include <span>

#include "engine/storage.h"

namespace draftd {
namespace {

// Of the largest part of a history, for frequencies say more the more they
// count; of equally large ones the newest.
Fill fill_of(const History& history) {
  Fill fill;
  const auto consider = [&](const auto& part, std::size_t distinct) {
    if (part.tokens() > fill.total) {
      fill = {part.frequent_tokens(), part.tokens(), static_cast<std::uint32_t>(distinct)};
    }
  };
  consider(history.newer(), history.newer().degree(kRoot));
  consider(history.older(), history.older().degree(kRoot));
  const SegmentSet& segments = *history.segments();
  for (std::size_t i = segments.size(); i-- > 0;) consider(*segments[i], segments[i]->distinct_tokens());
  return fill;
}

// Tokens of the longest match that something followed.
std::uint32_t longest_followed(const LiveSource& source) {
  Cursor cursor = source.cursor;
  while (cursor.length > 0 && source.index->degree(cursor.state) == 0) cursor = source.index->shorter(cursor);
  return cursor.length;
}

}  // namespace

void Workbench::begin_batch(std::size_t requests) {
  rows.clear();
  live.clear();
  sealed.clear();
  pairs.clear();
  fits.clear();
  fit_search.clear();
  // Wishes point into them.
  live.reserve(requests * kMaxSources);
  sealed.reserve(requests * kMaxSources);
  pairs.reserve(requests * kMaxSources);
  wishes.clear();
  reasons.clear();
  stale_tails = 0;
}

// Own text, history, group history, corpora: the order in which equally long
// contexts are preferred, of live text before those of sealed text.
void Engine::Storage::wish_for(SessionEntry& entry, std::uint32_t nodes, Workbench& bench) const {
  Session& session = entry.session;
  const RequestOptions& options = session.options();
  const NamespaceState& home = *namespaces[entry.name_space];
  const std::size_t first_live = bench.live.size();
  const std::size_t first_sealed = bench.sealed.size();
  const std::size_t first_pairs = bench.pairs.size();
  const auto read_head = [&](const Head& head, Source kind) {
    if (head.index().tokens() == 0) return;
    bench.live.push_back({&head.index(), kind, session.cursor_in(head.index())});
    bench.pairs.push_back({&head.pairs(), kind});
  };
  const Cursor own = session.own_cursor();
  // What the request generated itself it has as own text: a flight that matches
  // no further than that may say the same once more, and counts for nothing new.
  const auto read_flight = [&](const Flight& flight, Source kind) {
    if (!flight.has_others(entry)) return;
    Cursor cursor = session.cursor_in(flight.index());
    // Often the longest match is the end of the request's own newest piece.
    while (cursor.length > own.length && flight.index().degree(cursor.state) == 0)
      cursor = flight.index().shorter(cursor);
    if (cursor.length > own.length) bench.live.push_back({&flight.index(), kind, cursor});
  };
  const auto read = [&](const History& history, Source kind) {
    read_head(*history.newer_head(), kind);
    read_head(*history.older_head(), kind);
    read_flight(history.flight(), kind);
    if (!history.segments()->empty()) bench.sealed.push_back({history.segments().get(), kind});
  };

  bench.live.push_back({&session.own_index(), Source::kOwnText, own});
  home.each_history(options, read);
  std::uint32_t live_match = 0;
  for (std::size_t i = first_live; i < bench.live.size(); ++i)
    live_match = std::max(live_match, longest_followed(bench.live[i]));
  read_corpora(entry, live_match, bench);

  DraftWish wish;
  wish.text = session.text();
  wish.live = {bench.live.data() + first_live, bench.live.size() - first_live};
  wish.sealed = {bench.sealed.data() + first_sealed, bench.sealed.size() - first_sealed};
  wish.prompt = static_cast<std::uint32_t>(session.prompt_length());
  wish.own_pairs = &session.own_pairs();
  wish.history_pairs = {bench.pairs.data() + first_pairs, bench.pairs.size() - first_pairs};
  wish.model = &model_of(home);
  if (options.reads_history) wish.fill = fill_of(home.history);
  wish.stop_ids = options.stop_ids;
  wish.vocabulary = options.vocabulary;
  wish.max_nodes = nodes;
  wish.chain = options.chain;
  wish.policy = options.policy;
  bench.wishes.push_back(wish);
}

// Corpora that a request may read; `live_match` is the longest match of its live text.
void Engine::Storage::read_corpora(SessionEntry& entry, std::uint32_t live_match, Workbench& bench) const {
  Session& session = entry.session;
  const NamespaceState& home = *namespaces[entry.name_space];
  const std::size_t first = bench.sealed.size();
  std::array<std::uint64_t, kMaxSources> identities;
  home.each_corpus(session.options(), [&](std::uint32_t, const Corpus& corpus) {
    identities[bench.sealed.size() - first] = corpus.identity;
    bench.sealed.push_back({corpus.segments.get(), Source::kCorpus});
  });

  const std::size_t count = bench.sealed.size() - first;
  const std::span<const Token> text = session.text();
  const std::span<Reach> reaches = session.reaches({identities.data(), count});
  for (std::size_t i = 0; i < count; ++i) {
    reaches[i].update(static_cast<std::uint32_t>(text.size()), [&](std::uint32_t position, std::uint32_t& length) {
      bench.fit_search.add(*bench.sealed[first + i].segments, text.first(position), length);
    });
    bench.fits.push_back({&bench.sealed[first + i], &reaches[i], static_cast<std::uint32_t>(count - i), live_match});
  }
}

// Trusts each corpus by how far it matched lately, beside whatever the same
// request has that matches furthest.
void Workbench::judge_fits() {
  fit_search.run();
  for (std::size_t first = 0; first < fits.size(); first += fits[first].corpora) {
    const std::span<Fit> beside(fits.data() + first, fits[first].corpora);
    double furthest = kLiveReach * beside[0].live_match;
    for (const Fit& fit : beside) furthest = std::max(furthest, fit.reach->mean());
    for (const Fit& fit : beside) fit.source->trust = trust(fit.reach->mean(), furthest);
  }
}

}  // namespace draftd
