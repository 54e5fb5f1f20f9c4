// What a namespace learned from its verifiers: how likely a candidate of that
// evidence is to be what follows. Cells count, for each kind of evidence, how
// often it was right; their logits are mixed by weights that are learned too
// (online logistic mixing: Mattern 2013, "Linear and geometric mixtures", and
// the PAQ compressors before it); last, survival is corrected by what became of
// nodes that were drafted with it. All of it are counts and weights: no text.
//
// A pure state machine: the same lessons in the same order give the same bits on
// any machine, for logarithms and exponentials are its own (learn/logistic.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "draftd/types.h"

namespace draftd {

// One possible continuation of a node, as the model sees it.
struct Candidate {
  // Three contexts, the pairs of the request and of the history, the blend, the
  // rank among frequent tokens or a constant, and what a draft source says.
  static constexpr std::size_t kInputs = 8;
  static constexpr std::size_t kBlend = 5;

  Token token;
  float blend;  // logit of what prediction by partial matching says
  std::array<std::uint16_t, kInputs> cells;
  std::uint16_t agreement;  // weights, by how many contexts know it and which is the longest that does
  std::uint16_t standing;   // weights, by the longest context and how the candidate stands there
};

// What a tree was made from, kept until it is known what followed.
struct Lesson {
  std::vector<Candidate> candidates;
  std::vector<std::uint32_t> end;  // running ends in `candidates`: those of the root, of the first node, ...
  std::vector<double> raw;         // survival of each node before it is corrected

  std::span<const Candidate> of(std::size_t place) const {  // 0: the root
    const std::uint32_t first = place == 0 ? 0 : end[place - 1];
    return std::span(candidates).subspan(first, end[place] - first);
  }
  // To the first nodes of the tree.
  void cut(std::size_t nodes) {
    end.resize(nodes + 1);
    raw.resize(nodes);
    candidates.resize(end.back());
  }
  void clear() {
    candidates.clear();
    end.clear();
    raw.clear();
  }
  std::size_t memory_size() const {
    return candidates.capacity() * sizeof(Candidate) + end.capacity() * sizeof(std::uint32_t) +
           raw.capacity() * sizeof(double);
  }
};

// All that a model knows, as plain numbers.
struct ModelTables {
  std::vector<float> hits;        // by cell; those of the first two don't count
  std::vector<float> trials;      // by cell
  std::vector<float> agreement;   // weights, kInputs to a set
  std::vector<float> standing;    // likewise
  std::vector<float> correction;  // of the logit of survival, by knot
  std::uint64_t lessons = 0;
};

class Model {
 public:
  // Of one node; a multiple of four.
  static constexpr std::size_t kMostCandidates = 20;

  // Knows nothing but a start set by hand.
  Model();
  // Throws std::invalid_argument for numbers that no model has.
  explicit Model(const ModelTables& tables);
  Model(const Model& other);
  ~Model();

  // That each candidate is what follows, its node given; one by one, so that the
  // sum may pass 1. `into` has room for the next multiple of four.
  void probabilities(std::span<const Candidate> candidates, std::span<float> into) const;
  // Of a node whose probabilities multiply to `raw`; never falls when `raw` rises.
  double survival(double raw) const;

  // One node's candidates, at most kMostCandidates, and what followed it.
  void learn(std::span<const Candidate> candidates, Token followed);
  // What became of a node that went through the target.
  void learn_survival(double raw, bool accepted);

  // Nodes that were learned from.
  std::uint64_t lessons() const;
  std::size_t memory_size() const;
  ModelTables tables() const;
  // The same on any machine. load() throws std::invalid_argument for bytes that save() didn't write.
  std::vector<std::uint8_t> save() const;
  static std::unique_ptr<Model> load(std::span<const std::uint8_t> bytes);

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

}  // namespace draftd
