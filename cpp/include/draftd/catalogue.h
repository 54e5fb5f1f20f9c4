// Codes that cross the wire. proto/draftd/v1/catalogue.proto is the catalogue
// and says what each means; a contract test holds this header equal to it.
#pragma once

#include <cstdint>

namespace draftd {

enum class Status : std::uint8_t {
  kOk = 0,
  kNeedSync = 1,
  kStaleEpoch = 2,
  kInvalidToken = 3,
  kLimitExceeded = 7,
};

enum class Reason : std::uint8_t {
  kNotEmpty = 0,
  kNoMatch = 1,
  kNotAsked = 2,
  kBelowThreshold = 3,
  kStopped = 4,
  kLengthLimit = 5,
  kBudgetSpent = 6,
  kRefused = 7,
  kNotWorthIt = 9,
  kResting = 10,
};

enum class TailKind : std::uint8_t { kTree = 0, kChain = 1, kTape = 2 };
enum class Share : std::uint8_t { kOutputs = 0, kGroup = 1, kAll = 2, kNothing = 3 };

enum class Preset : std::uint8_t { kLearned = 0, kSuffixDecoding = 1, kNgramBfs = 2, kNgramProb = 3 };

enum class Source : std::uint8_t {
  kOwnText = 0,
  kSharedHistory = 1,
  kGroupHistory = 2,
  kCorpus = 3,
  kFill = 4,
  kDraftSource = 5,
};

}  // namespace draftd
