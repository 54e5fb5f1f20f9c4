// Why a draft was made: what each text that a request reads knows of each
// drafted node. For people, so it is exact where drafting is only fast.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "draftd/catalogue.h"
#include "draftd/drafting.h"

namespace draftd {

// Text that a request reads, as a whole: its own, a history, a corpus. The fill is no text of its own.
struct TextSource {
  Source kind;
  std::uint32_t corpus = 0;  // number of a corpus
  bool running = false;      // of a history: what requests have generated that still run

  bool operator==(const TextSource&) const = default;
};

struct ReadSource {
  TextSource source;
  std::uint64_t tokens;
  std::uint64_t documents;  // finished ones
};

// A place in a document.
struct DocumentPlace {
  std::string label;                 // empty in the request's own text
  std::uint64_t position;            // from 0 on, of the token in its document
  std::optional<std::int64_t> time;  // of the document, unix seconds; none in the request's own text
};

// What one source knows of a node. Its context is the longest suffix of the
// text before the node, at most kMaxMatch tokens, behind which the node's token
// occurs there. A source that knows it behind no token at all says nothing.
struct Evidence {
  TextSource source;
  std::uint32_t length;  // tokens of the context; 0 for a fill
  std::uint64_t count;   // how often the token follows the context
  std::uint64_t total;   // how often any token of the same document does
  // Where the token followed most recently; none for a fill and for running requests.
  std::optional<DocumentPlace> last;
};

struct ExplainedNode {
  DraftNode node;
  std::vector<Evidence> evidence;  // longest context first, ties in the order of the sources
};

struct Explanation {
  Reason reason = Reason::kNotEmpty;  // why there is no node
  std::vector<ReadSource> sources;    // own text, history, group's history, corpora
  std::vector<ExplainedNode> nodes;   // in the order of the tree: parents first
};

}  // namespace draftd
