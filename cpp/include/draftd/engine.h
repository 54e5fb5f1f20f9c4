// The engine: verifiers' sessions, the namespaces they draft from, and the
// indexing that goes on behind the steps. Thread-safe; knows numbers only:
// names, tokenizers and the wire are the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "draftd/catalogue.h"
#include "draftd/explanation.h"
#include "draftd/histories.h"
#include "draftd/index.h"
#include "draftd/segments.h"
#include "draftd/session.h"
#include "draftd/types.h"

namespace draftd {

struct EngineLimits {
  double session_ttl;       // seconds without a sign of life after which a session goes
  std::size_t memory;       // bytes of sessions, kept indexes, heads and flights of histories, and models together
  std::size_t history;      // bytes of one history, its segments included
  std::uint32_t max_nodes;  // per request and step
  bool in_flight = true;    // running requests draft from what others have generated so far
  bool learning = true;     // drafts are scored by what became of earlier ones
  PaceRules pace = {};
  unsigned threads = 1;  // that make the drafts of one step, the caller's included
};

struct OpenRequest {
  std::uint64_t verifier;  // incarnation
  std::uint32_t request;   // handle
  std::uint32_t epoch;
  std::uint32_t name_space;
  std::string_view label;  // of what the request leaves behind
  RequestOptions options;
  std::span<const Token> prompt;
  std::span<const Token> output;
};

// The rows of one step, as columns. Ragged columns come with running ends.
struct StepColumns {
  std::span<const std::uint32_t> request;
  std::span<const std::uint32_t> epoch;
  std::span<const std::uint32_t> start;
  std::span<const std::uint32_t> token_end;
  std::span<const Token> tokens;
  std::span<const std::uint32_t> tail_base;
  std::span<const std::int32_t> verified;
  std::span<const std::uint32_t> bitmap_end;  // empty: no row has a bitmap
  std::span<const std::uint8_t> bitmap;
  std::span<const std::uint16_t> max_nodes;
  std::uint32_t budget;  // over the batch; 0: as much as the rows ask for
  double min_survival;
  // Of each request; where there is one EngineLimits::pace holds.
  std::optional<std::uint32_t> most_nodes = std::nullopt;
  // No more nodes than pay, then; its `rows` are set by the step.
  std::optional<StepCost> cost = std::nullopt;
};

// What a draft source proposes for the rows of a step, as columns.
struct DraftedColumns {
  std::span<const std::uint32_t> node_end;  // by row
  std::span<const DraftedNode> nodes;
};

struct TailColumns {
  std::vector<std::uint32_t> base;
  std::vector<std::uint8_t> status;
  std::vector<std::uint8_t> reason;
  std::vector<std::uint8_t> kind;
  std::vector<std::uint32_t> detail;   // position of an invalid id in the row's tokens
  std::vector<std::uint16_t> allowed;  // nodes that the row might have had
  std::vector<std::int16_t> accepted;  // nodes that the text went through, of the tail used; -1: of none that is known
  std::vector<std::uint32_t> node_end;
  std::vector<Token> tokens;
  std::vector<std::int16_t> parents;
  std::vector<float> survival;
  std::vector<std::uint8_t> source;

  void clear();
};

// Windows of text for the requests of a step, and what was taken away from them.
struct TapeColumns {
  std::vector<std::uint32_t> window_end;  // by row
  // By window; of a row, the longer match comes later.
  std::vector<std::uint32_t> token_end;
  std::vector<Token> tokens;
  std::vector<std::uint32_t> corpus;  // 0: of the request's histories
  std::vector<std::uint64_t> version;
  // All that requests read now of which something was taken away: one entry for each corpus and for the histories.
  std::vector<std::uint32_t> reader;
  std::vector<std::uint32_t> reader_epoch;
  std::vector<std::uint32_t> reads;
  std::vector<std::uint64_t> reads_version;
  std::uint64_t news = 0;  // grows with everything that is taken away

  void clear();
};

struct EngineStatistics {
  Acceptance acceptance;
  std::uint64_t delivered_tails = 0;     // with at least one node
  std::vector<std::uint64_t> delivered;  // nodes by depth
  std::uint64_t stale_tails = 0;
  std::uint64_t ignored_closes = 0;
  std::uint64_t accompanied_steps = 0;  // that began while another's drafts were being made
  std::uint64_t evicted_sessions = 0;   // by time to live or memory limit
  std::uint64_t forgotten_tokens = 0;   // of histories, to keep a limit
  std::uint64_t taken_over_tokens = 0;  // of openings, indexed by an earlier request
  double acceptance_of_requests = 0;    // sum of accepted / verified over closed requests that verified a node
  std::uint64_t requests_measured = 0;
  std::vector<std::uint64_t> empty_tails;  // by Reason
  std::vector<std::uint64_t> row_errors;   // by Status
  std::uint64_t sessions = 0;
  std::uint64_t verifiers = 0;
  // Tokens and bytes of own texts, histories, group histories, corpora, of what
  // running requests share, and of indexes kept for requests that go on from
  // those that ended. The bytes of own texts include requests that
  // are closed and not yet shared.
  struct Size {
    std::uint64_t tokens = 0;
    std::uint64_t bytes = 0;
  };
  Size own, history, group, corpus, in_flight, kept;
  std::uint64_t learned_bytes = 0;  // of the models of namespaces
};

class Engine {
 public:
  // Without an indexing thread the caller drives index_slice itself. Throws
  // std::invalid_argument for limits that can't be kept. `priors`: a saved model
  // that every namespace starts with; empty: a start set by hand. Throws
  // std::invalid_argument for other bytes.
  Engine(EngineLimits limits, bool indexing_thread, std::span<const std::uint8_t> priors = {});
  ~Engine();

  std::uint32_t create_namespace();
  // Visible at once and whole; replaces what the corpus was. Throws
  // std::length_error when the namespace has too many.
  void publish_corpus(std::uint32_t name_space, std::uint32_t corpus, SegmentSet segments);
  void withdraw_corpus(std::uint32_t name_space, std::uint32_t corpus);

  // The status, and the position of an invalid id in prompt + output. Throws
  // std::out_of_range for a namespace that was not created.
  std::pair<Status, std::uint32_t> open(const OpenRequest& request, double now);
  // `time` is of the document that it may leave behind, in unix seconds.
  Status close(std::uint64_t verifier, std::uint32_t request, std::uint32_t epoch, double now, std::int64_t time);
  // One step of one verifier. The columns have been checked to fit together.
  void step(std::uint64_t verifier, const StepColumns& step, double now, TailColumns& tails);
  // Drafts once more for the rows of a step that was just answered, from what a draft source has, too: `tails` is
  // that answer, and becomes the new one. A row whose text is no longer what it was is refused, and has to be opened
  // anew.
  void redraft(std::uint64_t verifier, std::span<const std::uint32_t> request, std::span<const std::uint32_t> epoch,
               const DraftedColumns& drafted, std::uint32_t budget, double min_survival,
               const std::optional<StepCost>& cost, TailColumns& tails);
  // The text of each request from `start` on, row by row; of one that is not there, or ends before, nothing.
  void texts(std::uint64_t verifier, std::span<const std::uint32_t> request, std::span<const std::uint32_t> epoch,
             std::span<const std::uint32_t> start, std::vector<std::uint32_t>& token_end, std::vector<Token>& tokens);
  // At most `windows` windows of text around the best matches of each request's
  // text in what it may read, its own text left out; and, for all requests of
  // the verifier, what was taken away since `news`.
  void tapes(std::uint64_t verifier, std::span<const std::uint32_t> request, std::span<const std::uint32_t> epoch,
             std::uint32_t windows, std::uint64_t news, TapeColumns& tapes);
  // The draft that a request of that text and these options would get now, and
  // why. Changes nothing. Takes milliseconds, but the steps' lock for no longer
  // than a step does. Throws std::invalid_argument for an invalid id,
  // std::out_of_range for a namespace that was not created.
  Explanation explain(std::uint32_t name_space, const RequestOptions& options, std::span<const Token> prompt,
                      std::span<const Token> output);
  // Forgets the sessions that gave no sign of life; returns how many.
  std::size_t expire(double now);

  // The histories' documents, for a caller that keeps them. Without one a
  // history is bounded all the same. Throw std::out_of_range for a namespace
  // that was not created; a group's history begins to exist when it is published
  // to or restored.
  //
  // Whole documents that entered a history since they were last drained, in order.
  std::vector<HistoryDocuments> drain_history();
  std::vector<HistoryState> histories() const;
  // What is to be sealed next: an older head that nobody took yet, or the head,
  // in whose place a new one begins. None while the last one taken is still
  // held, and when there is none.
  std::optional<HistoryDocuments> freeze_history(const HistoryKey& key);
  // Replaces the segments, oldest first, and with `drop_frozen` drops what
  // freeze_history gave, in one moment. Over the limit the oldest go.
  void publish_history(const HistoryKey& key, SegmentSet segments, bool drop_frozen, double now);
  // Puts documents that were drained in an earlier life behind those of the
  // head, which becomes of their generation. Throws std::logic_error when the
  // head has documents that were not drained: restore before requests are served.
  void restore_history(const HistoryDocuments& documents, double now);
  // Requests with these labels, open or closed, leave nothing behind from now
  // on; kept indexes of these namespaces go. Returns the labels of which there are any, also when asked again. With a
  // group: those that would leave it to that group's history, or for "" to the namespace's own.
  std::unordered_set<std::string> forget_requests(std::span<const std::uint32_t> name_spaces,
                                                  const std::optional<std::string>& group,
                                                  const std::unordered_set<std::string>& labels);

  // What namespaces learned. None of it is text, and none is read for another
  // namespace. Past the memory limit it goes as histories do, and is learned anew.
  // Throw std::out_of_range for a namespace that was not created.
  //
  // By number, those that learned something; lessons since the priors' first.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> lessons() const;
  // A saved model; empty while nothing was learned.
  std::vector<std::uint8_t> learned(std::uint32_t name_space) const;
  // Goes on from there, unless nothing is to be learned. Throws
  // std::invalid_argument for bytes that are no saved model.
  void restore_learned(std::uint32_t name_space, std::span<const std::uint8_t> bytes, double now);
  void forget_learned(std::uint32_t name_space);

  // Indexing behind the steps. A ticket stands for all text taken so far.
  std::uint64_t ticket() const;
  bool indexed(std::uint64_t ticket) const;
  bool wait_indexed(std::uint64_t ticket, double seconds) const;
  // A new eventfd, readable after each progress; closed with the engine.
  int progress_fd();
  // Indexes up to `most` tokens; returns how many jobs are left.
  std::size_t index_slice(std::size_t most);
  void stop_indexing();

  EngineStatistics statistics() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
