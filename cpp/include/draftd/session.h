// The drafter's mirror of one request: a pure state machine. Events come in,
// what became of them comes out; no clock, no lock, no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "draftd/catalogue.h"
#include "draftd/drafting.h"
#include "draftd/index.h"
#include "draftd/outcome.h"
#include "draftd/reach.h"
#include "draftd/recent_pairs.h"
#include "draftd/rest.h"
#include "draftd/types.h"

namespace draftd {

struct RequestOptions {
  Token vocabulary = INT32_MAX;  // ids are in [0, vocabulary)
  std::vector<Token> stop_ids;
  std::optional<std::uint32_t> max_new_tokens;
  std::uint32_t max_nodes = UINT32_MAX;
  bool chain = false;
  DraftPolicy policy;
  Share share = Share::kOutputs;
  std::string group;  // empty: of no group
  bool reads_history = true;
  std::optional<std::vector<std::uint32_t>> corpora;  // absent: all of the namespace
};

// Position of the first id outside [0, vocabulary), if there is one.
std::optional<std::size_t> first_invalid(std::span<const Token> tokens, Token vocabulary);

// What holds for a request in paced steps.
struct PaceRules {
  RestRule rest;
  // With more tokens of output than this it may have `long_run_factor` times the nodes that the step gives each.
  std::uint32_t long_run_tokens = 0;
  double long_run_factor = 1.0;  // at least 1
};

// A request's own text as far as it is indexed.
struct OwnIndex {
  // Without the separator before it.
  std::span<const Token> text() const { return index.text().subspan(1); }
  std::size_t memory_size() const { return index.memory_size() + pairs.memory_size(); }

  Index index;
  RecentPairs pairs;
};

class Session {
 public:
  // `prompt` and `output` hold valid ids.
  Session(std::uint32_t epoch, RequestOptions options, std::span<const Token> prompt, std::span<const Token> output);

  static constexpr std::int16_t kNoOutcome = -1;
  struct Commit {
    Status status = Status::kOk;
    std::uint32_t position = 0;          // of the invalid id within the commit
    bool stale_tail = false;             // the commit used a tail that is neither our last nor the one before
    bool lesson = false;                 // it tells of our last tails: outcome() knows what became of them
    std::uint32_t kept = UINT32_MAX;     // committed tokens that the verifier did not take back
    std::int16_t accepted = kNoOutcome;  // nodes that the text went through, of the tail that it used
  };
  // Takes verified tokens that start at committed length `start`.
  Commit commit(std::uint32_t start, std::span<const Token> tokens, const Verified& verified);

  // Nodes that may be drafted now, with the reason where there are none.
  struct Allowance {
    std::uint32_t nodes;
    Reason reason;
  };
  Allowance allowance(std::uint32_t asked) const;
  // The same in a paced step of the request, which gives each at most so many nodes.
  Allowance paced_allowance(std::uint32_t asked, std::uint32_t most_nodes, const PaceRules& rules);
  // Remembers what was delivered, so that the next commit's outcome can be read.
  // Takes what it was made from, and gives memory back for the next.
  void deliver(std::span<const DraftNode> tree, Lesson& lesson);
  // After a commit with a lesson, before anything else. Who wants to keep it
  // exchanges it for another, whose memory is used again.
  Outcome& outcome() { return outcome_; }

  // Indexes up to `most` tokens of the own text; returns how many are left.
  std::size_t index_text(std::size_t most);
  std::size_t unindexed() const { return text().size() - own_.text().size(); }
  // Before anything is indexed: goes on from an index of the beginning of this text.
  void go_on_from(OwnIndex earlier) { own_ = std::move(earlier); }
  // The index of a session that ends: it has none from now on.
  OwnIndex give_index() { return std::exchange(own_, OwnIndex()); }
  Cursor own_cursor() const;
  const Index& own_index() const { return own_.index; }
  const RecentPairs& own_pairs() const { return own_.pairs; }
  // Where the text stands in another index. Costs as many steps as tokens were
  // committed since it was last asked, a few more when the index has grown.
  Cursor cursor_in(const Index& index);
  // What is known of how far these corpora matched, in their order; others are
  // forgotten. Valid until the next call or commit.
  std::span<Reach> reaches(std::span<const std::uint64_t> corpora);

  std::uint32_t epoch() const { return epoch_; }
  const RequestOptions& options() const { return options_; }
  std::uint32_t committed() const { return static_cast<std::uint32_t>(tokens_.size()); }
  bool stopped() const { return stop_ != kNotStopped; }
  // Prompt and output up to and including the stop id: all that counts.
  std::span<const Token> text() const { return {tokens_.data(), stopped() ? stop_ : tokens_.size()}; }
  std::span<const Token> output() const { return text().subspan(prompt_); }
  std::size_t prompt_length() const { return prompt_; }
  const Acceptance& acceptance() const { return acceptance_; }
  // Adds what was counted since the last call.
  void report(Acceptance& total);
  std::size_t memory_size() const;

 private:
  static constexpr std::size_t kNotStopped = SIZE_MAX;
  // What is remembered of a standing.
  struct Place {
    std::uint64_t index;    // its identity
    std::uint32_t version;  // of the index, when last looked
    std::size_t position;   // tokens of the text the cursor has read
    Cursor cursor;
  };

  Place& place_in(const Index& index);
  void cut(std::size_t length);
  void append(std::span<const Token> tokens);
  std::size_t counted(std::span<const Token> tokens) const;
  // What tokens at the last tail say of it, and of the one before. Returns how many nodes of the tail that was used
  // the text went through.
  std::int16_t observe(std::span<const Token> tokens, const Verified& verified);
  // Counts the nodes that went through the target, of those below the first `passed` of the path that the text took.
  void count(const Tail& tail, std::span<const std::uint16_t> path, std::size_t passed, const Verified& verified);

  std::uint32_t epoch_;
  RequestOptions options_;
  std::vector<Token> tokens_;
  std::size_t prompt_;
  std::size_t stop_ = kNotStopped;  // position just behind the first stop id of the output
  OwnIndex own_;
  std::vector<Place> places_;
  std::vector<Reach> reaches_;
  Tail tail_;     // the last one; its base is that of the text, or kNoTail
  Tail earlier_;  // the one before, unless text behind it was taken back
  Rest rest_;
  Acceptance acceptance_;  // of the whole request
  Acceptance unreported_;
  Outcome outcome_;  // of the last commit
  // Kept for their memory:
  std::vector<std::uint16_t> earlier_path_;
  std::vector<std::uint16_t> depths_;
};

}  // namespace draftd
