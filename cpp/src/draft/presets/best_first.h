// Grows a plan below one suffix of the text, the likeliest string first: a
// string is as likely as the shares of its tokens multiplied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draft/presets/places.h"
#include "draft/presets/plan.h"

namespace draftd {

// What the count of a follower is a share of.
enum class ShareOf : std::uint8_t {
  kOccurrences,   // of the string it follows; the end of the text is one, though nothing follows it yet
  kMostFrequent,  // the counts of the most frequent followers together; others are not proposed
};

class BestFirst {
 public:
  static constexpr std::size_t kMostFrequent = 10;

  // Strings begin with the suffix of `length` tokens and have at most `longest`.
  void grow(Plan& plan, Places& places, std::uint32_t length, std::uint32_t longest, ShareOf share_of);

 private:
  struct String {
    Plan::Node node;  // its last
    Places::Place place;
    std::uint32_t length;
    std::uint32_t count;  // 0: not known
    double probability;
  };
  struct Candidate {
    String before;
    Follower follower;
    double probability;
    std::uint32_t number;  // ties to the earlier proposed
  };

  static bool less_likely(const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability < b.probability : a.number > b.number;
  }
  // Proposes the `most` likeliest tokens after the string.
  void propose(Places& places, const String& string, std::size_t most, ShareOf share_of);

  std::vector<Candidate> candidates_;  // a heap
  std::uint32_t proposed_ = 0;
};

}  // namespace draftd
