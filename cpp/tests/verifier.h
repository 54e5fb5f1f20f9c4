// One verifier with requests of one namespace, for tests of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "draftd/engine.h"

namespace draftd::testing {

inline constexpr EngineLimits kAmple{600.0, std::size_t{1} << 30, std::size_t{1} << 28, 64};
inline constexpr std::uint32_t kAtOnce = 1 << 20;

struct Tail {
  Status status;
  Reason reason;
  std::uint32_t base;
  std::vector<Token> tokens;
  std::vector<float> survival;

  bool operator==(const Tail&) const = default;
};

// A step has one row. A request's label is empty, the time of its close 0, unless said otherwise.
class Verifier {
 public:
  Verifier(Engine& engine, std::uint64_t incarnation, std::uint32_t name_space = 0)
      : engine_(engine), incarnation_(incarnation), name_space_(name_space) {}

  Status open(std::uint32_t request, std::span<const Token> prompt, RequestOptions options = {},
              std::string_view label = {}) {
    return engine_.open({incarnation_, request, ++epoch_, name_space_, label, std::move(options), prompt, {}}, now)
        .first;
  }
  Tail step(std::uint32_t request, std::uint32_t start, std::span<const Token> tokens, std::uint16_t max_nodes) {
    const auto token_end = static_cast<std::uint32_t>(tokens.size());
    const std::uint32_t no_tail = Verified::kNoTail;
    const std::int32_t all = Verified::kAll;
    StepColumns columns{};
    columns.request = {&request, 1};
    columns.epoch = {&epoch_, 1};
    columns.start = {&start, 1};
    columns.token_end = {&token_end, 1};
    columns.tokens = tokens;
    columns.tail_base = {&no_tail, 1};
    columns.verified = {&all, 1};
    columns.max_nodes = {&max_nodes, 1};
    engine_.step(incarnation_, columns, now, tails_);
    return answer();
  }
  // Once more what the last step was answered, from a draft source's chain, too.
  Tail redraft(std::uint32_t request, std::span<const Token> chain) {
    std::vector<DraftedNode> nodes;
    for (const Token token : chain) {
      nodes.push_back({token, static_cast<std::int16_t>(static_cast<int>(nodes.size()) - 1), DraftedNode::kUnstated});
    }
    const auto node_end = static_cast<std::uint32_t>(nodes.size());
    engine_.redraft(incarnation_, {&request, 1}, {&epoch_, 1}, {{&node_end, 1}, nodes}, 0, 0.0, {}, tails_);
    return answer();
  }
  // The length of what a draft source is shown of the request's text.
  std::size_t shown(std::uint32_t request, std::uint32_t start) {
    std::vector<std::uint32_t> token_end;
    std::vector<Token> tokens;
    engine_.texts(incarnation_, {&request, 1}, {&epoch_, 1}, {&start, 1}, token_end, tokens);
    return tokens.size();
  }
  void close(std::uint32_t request, std::int64_t time = 0) { engine_.close(incarnation_, request, epoch_, now, time); }

  // Opens, commits and closes, so that `output` is shared.
  void share(std::uint32_t request, std::span<const Token> output, RequestOptions options = {},
             std::string_view label = {}, std::int64_t time = 0) {
    open(request, {}, std::move(options), label);
    step(request, 0, output, 0);
    close(request, time);
  }

  double now = 0.0;

 private:
  Tail answer() const {
    return {static_cast<Status>(tails_.status[0]), static_cast<Reason>(tails_.reason[0]), tails_.base[0], tails_.tokens,
            tails_.survival};
  }

  Engine& engine_;
  TailColumns tails_;  // of the last step
  std::uint64_t incarnation_;
  std::uint32_t name_space_;
  std::uint32_t epoch_ = 0;
};

inline std::vector<Token> ascending(Token first, std::size_t count) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline bool drafts(const Tail& tail, Token token) {
  return std::find(tail.tokens.begin(), tail.tokens.end(), token) != tail.tokens.end();
}

}  // namespace draftd::testing
