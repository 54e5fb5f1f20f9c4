// How long the core takes to look up contexts in one sealed segment, and to
// draft from it alone, without what an engine and its messages add.
//
//     sealed_bench SEGMENT CONTEXTS BATCH NODES
//
// CONTEXTS holds int32 tokens, kMaxMatch for each context. They are taken in
// batches; every batch is looked up, and every other batch drafted for, so
// that none finds in the cache what the one before brought in for it. Writes a
// line for each batch: "lookup" or "draft" and its microseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <ios>
#include <span>
#include <string>
#include <vector>

#include "draftd/drafting.h"
#include "draftd/nearest.h"

namespace {

using draftd::Token;

std::vector<Token> read_tokens(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::ios_base::failure(std::string("can't read ") + path);
  std::vector<Token> tokens(static_cast<std::size_t>(file.tellg()) / sizeof(Token));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(tokens.data()), static_cast<std::streamsize>(tokens.size() * sizeof(Token)));
  return tokens;
}

void report(const char* what, const std::function<void()>& work) {
  const auto started = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - started;
  std::printf("%s %.2f\n", what, took.count());
}

void measure(const draftd::SegmentSet& segments, std::span<const Token> contexts, std::size_t batch,
             std::uint32_t nodes) {
  const std::size_t batch_tokens = batch * draftd::kMaxMatch;
  const draftd::SealedSource source{&segments, draftd::Source::kCorpus};
  draftd::NearestSearch search;
  draftd::Drafter drafter;
  const draftd::Model model;
  std::vector<draftd::Nearest> found(batch);
  std::vector<draftd::DraftWish> wishes(batch);
  bool drafting = false;
  for (; contexts.size() >= batch_tokens; contexts = contexts.subspan(batch_tokens), drafting = !drafting) {
    const auto context = [&](std::size_t i) { return contexts.subspan(i * draftd::kMaxMatch, draftd::kMaxMatch); };
    if (drafting) {
      for (std::size_t i = 0; i < batch; ++i) {
        wishes[i].text = context(i);
        wishes[i].sealed = {&source, 1};
        wishes[i].model = &model;
        wishes[i].max_nodes = nodes;
      }
      report("draft", [&] { drafter.draft(wishes, UINT32_MAX, 0.0); });
    } else {
      report("lookup", [&] {
        search.clear();
        for (std::size_t i = 0; i < batch; ++i) search.add(segments, context(i), found[i]);
        search.run();
      });
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: sealed_bench SEGMENT CONTEXTS BATCH NODES\n");
    return 2;
  }
  const draftd::SegmentSet segments{draftd::Segment::open(arguments[1])};
  measure(segments, read_tokens(arguments[2]), std::strtoul(arguments[3], nullptr, 10),
          static_cast<std::uint32_t>(std::strtoul(arguments[4], nullptr, 10)));
  return 0;
}
