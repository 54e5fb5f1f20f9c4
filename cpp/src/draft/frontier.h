// The nodes a tree could take next, likeliest first, ties to the earlier
// proposed. Holds only as many as can still be taken.
#pragma once

#include <cstdint>
#include <vector>

#include "draftd/drafting.h"

namespace draftd {

struct Proposal {
  double survival;
  Token token;
  std::int16_t parent;
  Source source;
};

class Frontier {
 public:
  void reset(std::size_t room) {
    room_ = room;
    first_ = 0;
    proposals_.clear();
  }
  bool empty() const { return first_ == proposals_.size(); }
  const Proposal& best() const { return proposals_[first_]; }

  // What is no likelier than this would not be taken.
  double least() const { return proposals_.size() - first_ == room_ && !empty() ? proposals_.back().survival : 0.0; }

  // Takes the best out; one fewer can be taken afterwards.
  Proposal pop() {
    --room_;
    const Proposal best = proposals_[first_++];
    if (proposals_.size() - first_ > room_) proposals_.pop_back();
    return best;
  }

  void push(const Proposal& proposal) {
    if (proposals_.size() - first_ == room_) {
      if (room_ == 0 || proposal.survival <= proposals_.back().survival) return;
      proposals_.pop_back();
    }
    proposals_.push_back(proposal);
    Proposal* const first = proposals_.data() + first_;
    Proposal* place = &proposals_.back();
    for (; place > first && place[-1].survival < proposal.survival; --place) *place = place[-1];
    *place = proposal;
  }

 private:
  std::vector<Proposal> proposals_;  // from first_ on
  std::size_t first_ = 0;
  std::size_t room_ = 0;
};

}  // namespace draftd
