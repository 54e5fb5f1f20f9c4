// Lookup in texts that grow: for each length a set of the n-grams seen, each
// as the position where the occurrence that counts ends.
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "draftd/ngram.h"
#include "support/pod_vector.h"

namespace draftd {
namespace {

using Text = PodVector<Token>;
using End = std::uint32_t;

// Two positions are the same n-gram when the tokens before them are.
struct GramHash {
  using is_avalanching = void;

  std::size_t operator()(End end) const {
    std::uint64_t hash = 0;
    for (const Token* token = text->data() + (end - length); token != text->data() + end; ++token) {
      hash = (hash ^ static_cast<std::uint32_t>(*token)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }

  const Text* text;
  std::uint32_t length;
};

struct GramEqual {
  bool operator()(End a, End b) const {
    const Token* const end = text->data() + a;
    return std::equal(end - length, end, text->data() + b - length);
  }

  const Text* text;
  std::uint32_t length;
};

using Grams = boost::unordered_flat_set<End, GramHash, GramEqual>;

// A byte of bookkeeping for each of 15 entries in a group of 16.
template <typename Table>
std::size_t table_size(const Table& table) {
  return table.bucket_count() * (sizeof(*table.begin()) * 15 + 16) / 15;
}

std::span<const Token> tokens_of(const NgramBatch& batch, std::size_t row) {
  const std::uint32_t first = row == 0 ? 0 : batch.token_end[row - 1];
  return batch.tokens.subspan(first, batch.token_end[row] - first);
}

}  // namespace

struct NgramText::Storage {
  explicit Storage(const NgramRule& of) : rule(of) {
    for (std::uint32_t length = rule.shortest; length <= rule.longest; ++length)
      grams.emplace_back(0, GramHash{&text, length}, GramEqual{&text, length});
  }

  void enter_up_to(End last);

  NgramRule rule;
  Text text;
  std::vector<Grams> grams;  // by length, from rule.shortest on
  End entered = 0;           // n-grams that end here or before are in the sets
};

void NgramText::Storage::enter_up_to(End last) {
  for (End end = entered + 1; end <= last; ++end) {
    for (std::uint32_t length = rule.shortest; length <= std::min(rule.longest, end); ++length) {
      Grams& of_length = grams[length - rule.shortest];
      if (rule.newest) of_length.erase(end);
      of_length.insert(end);
    }
  }
  entered = std::max(entered, last);
}

NgramText::NgramText(const NgramRule& rule) : storage_(std::make_unique<Storage>(rule)) {}
NgramText::~NgramText() = default;
NgramText::NgramText(NgramText&&) noexcept = default;
NgramText& NgramText::operator=(NgramText&&) noexcept = default;

void NgramText::put(std::size_t start, std::span<const Token> tokens) {
  Storage& s = *storage_;
  const std::size_t known = std::min(s.text.size() - start, tokens.size());
  const Token* const from = s.text.data() + start;
  const auto agreed = static_cast<std::size_t>(std::mismatch(from, from + known, tokens.data()).second - tokens.data());
  if (start + agreed < s.text.size()) {
    const NgramRule rule = s.rule;
    Text kept;
    kept.swap(s.text);
    while (kept.size() > start + agreed) kept.pop_back();
    storage_ = std::make_unique<Storage>(rule);
    storage_->text.swap(kept);
  }
  const std::span<const Token> fresh = tokens.subspan(agreed);
  if (!fresh.empty()) std::copy(fresh.begin(), fresh.end(), storage_->text.extend(fresh.size()));
  // Those at the very end stay out: they must not match themselves.
  if (!storage_->text.empty()) storage_->enter_up_to(static_cast<End>(storage_->text.size() - 1));
}

std::span<const Token> NgramText::continuation(std::size_t most) const {
  const Storage& s = *storage_;
  const auto end = static_cast<End>(s.text.size());
  for (std::uint32_t length = std::min(s.rule.longest, end); length >= s.rule.shortest; --length) {
    const Grams& of_length = s.grams[length - s.rule.shortest];
    const auto found = of_length.find(end);
    if (found != of_length.end()) return {s.text.data() + *found, std::min<std::size_t>(most, end - *found)};
  }
  return {};
}

std::size_t NgramText::size() const { return storage_->text.size(); }

std::size_t NgramText::memory_size() const {
  std::size_t size = sizeof(Storage) + storage_->text.memory_size();
  for (const Grams& of_length : storage_->grams) size += sizeof(Grams) + table_size(of_length);
  return size;
}

struct NgramTexts::Storage {
  void require_known(const NgramBatch& batch);

  NgramRule rule;
  boost::unordered_flat_map<std::uint64_t, NgramText> texts;  // by request
  boost::unordered_flat_set<std::uint64_t> in_batch;          // kept for its memory
  std::size_t text_bytes = 0;                                 // of all texts
};

void NgramTexts::Storage::require_known(const NgramBatch& batch) {
  in_batch.clear();
  for (std::size_t row = 0; row < batch.request.size(); ++row) {
    if (!in_batch.insert(batch.request[row]).second) {  // its first row may cut the text that the second begins in
      throw std::invalid_argument("row " + std::to_string(row) + " is of request " +
                                  std::to_string(batch.request[row]) + ", as an earlier one");
    }
    const auto text = texts.find(batch.request[row]);
    const std::size_t known = text == texts.end() ? 0 : text->second.size();
    if (batch.start[row] > known) {
      throw std::invalid_argument("row " + std::to_string(row) + " starts at token " +
                                  std::to_string(batch.start[row]) + " of a text of which " + std::to_string(known) +
                                  " are known");
    }
  }
}

NgramTexts::NgramTexts(const NgramRule& rule) : storage_(std::make_unique<Storage>(rule)) {}
NgramTexts::~NgramTexts() = default;

void NgramTexts::propose(const NgramBatch& batch, NgramChains& chains) {
  storage_->require_known(batch);
  chains.node_end.clear();
  chains.tokens.clear();
  for (std::size_t row = 0; row < batch.request.size(); ++row) {
    const auto [entry, is_new] = storage_->texts.try_emplace(batch.request[row], storage_->rule);
    NgramText& text = entry->second;
    if (!is_new) storage_->text_bytes -= text.memory_size();
    text.put(batch.start[row], tokens_of(batch, row));
    storage_->text_bytes += text.memory_size();
    const std::span<const Token> chain = text.continuation(batch.most[row]);
    chains.tokens.insert(chains.tokens.end(), chain.begin(), chain.end());
    chains.node_end.push_back(static_cast<std::uint32_t>(chains.tokens.size()));
  }
}

void NgramTexts::forget(std::span<const std::uint64_t> requests) {
  for (const std::uint64_t request : requests) {
    const auto text = storage_->texts.find(request);
    if (text == storage_->texts.end()) continue;
    storage_->text_bytes -= text->second.memory_size();
    storage_->texts.erase(text);
  }
}

std::size_t NgramTexts::memory_size() const {
  return sizeof(Storage) + table_size(storage_->texts) + table_size(storage_->in_batch) + storage_->text_bytes;
}

}  // namespace draftd
