// Which windows of text a request gets: those around its longest matches that
// go on differently.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draftd/engine.h"
#include "draftd/index.h"
#include "draftd/nearest.h"
#include "draftd/types.h"

namespace draftd {

// Whose text a window is.
struct TapeSource {
  std::uint32_t corpus;  // 0: histories
  std::uint64_t version;
};

// Searches for the rows of a batch first, in lockstep, then chooses for each.
class TapeSelection {
 public:
  // Text before the match, for a matcher that comes later or from elsewhere, and behind it.
  static constexpr std::uint32_t kBefore = 16;
  static constexpr std::uint32_t kAfter = 48;
  // Two windows are the same if that many tokens behind their matches are.
  static constexpr std::uint32_t kDistinct = 4;
  // Places of one source that are looked at.
  static constexpr std::uint32_t kPlaces = Nearest::kMost;

  void clear(std::size_t rows);
  void begin_row(Token vocabulary);
  // Of the row begun last. Matches of `least` tokens or fewer don't count.
  void add(const Index& index, Cursor cursor, std::uint32_t least, TapeSource source);
  void add(const SegmentSet& segments, std::span<const Token> text, TapeSource source);
  // After everything was added: at most `windows` of each row, in order.
  void choose(std::uint32_t windows, TapeColumns& tapes);

 private:
  // A place where the end of a request's text stands.
  struct Place {
    std::uint32_t length;         // tokens of the text before it
    std::span<const Token> live;  // one of these two
    const Segment::Layout* segment;
    std::size_t at;  // of the token that follows
    TapeSource source;

    // kNoToken where the document ends, and where an id is none of the request's vocabulary.
    Token token(std::size_t position, Token vocabulary) const;
    bool goes_on_like(const Place& other, Token vocabulary) const;
    // The window around it.
    void write(Token vocabulary, TapeColumns& tapes) const;
  };
  struct Sealed {
    Nearest* nearest;
    TapeSource source;
  };
  struct Row {
    Token vocabulary;
    std::size_t first_place;
    std::size_t first_sealed;
  };

  void choose(const Row& row, std::span<const Place> places, std::uint32_t windows, TapeColumns& tapes);

  std::vector<Row> rows_;
  std::vector<Place> places_;
  std::vector<Sealed> sealed_;
  std::vector<Nearest> nearest_;
  NearestSearch search_;
  std::vector<Place> of_row_;
  std::vector<const Place*> chosen_;
  std::vector<Continuation> followers_;
};

}  // namespace draftd
