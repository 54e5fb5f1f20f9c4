// The automaton against brute force. Bytes are a small program: tokens to
// append, repetitions of the last tokens, ends of documents, and queries.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "brute_force.h"
#include "draftd/index.h"

namespace {

using draftd::Index;
using draftd::Token;
using draftd::testing::BruteForce;
using draftd::testing::levels;

constexpr std::size_t kMostTokens = 2000;  // brute force is slow
constexpr std::uint8_t kTokens = 4;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class Program {
 public:
  void run(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) {
      if (text_.size() > kMostTokens) break;
      const std::uint8_t argument = byte / 4;
      switch (byte % 4) {
        case 0: append({argument % kTokens}); break;
        case 1: repeat(1U + argument % 8, 1U + argument / 8 * 10); break;
        case 2: end_document(); break;
        default: query(argument); break;
      }
    }
    require(levels(index_, index_.tail()) == twin_.levels(twin_.open_document(), 2), "the tail differs");
    index_.check_integrity();
  }

 private:
  void append(const std::vector<Token>& tokens) {
    index_.append(tokens);
    twin_.append(tokens);
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }

  void repeat(std::size_t last, std::size_t times) {
    if (last > text_.size()) return;
    const std::vector<Token> unit(text_.end() - static_cast<std::ptrdiff_t>(last), text_.end());
    for (std::size_t i = 0; i < times; ++i) append(unit);
  }

  void end_document() {
    index_.end_document();
    twin_.end_document();
  }

  // What was appended up to some place, followed by another token.
  void query(std::uint8_t argument) {
    std::vector<Token> context(text_.begin(),
                               text_.begin() + static_cast<std::ptrdiff_t>(text_.size() * argument / 64));
    context.push_back(argument % (kTokens + 1));
    require(levels(index_, index_.match(context)) == twin_.levels(context), "a match differs");
  }

  Index index_;
  BruteForce twin_;
  std::vector<Token> text_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Program().run({data, size});
  return 0;
}
