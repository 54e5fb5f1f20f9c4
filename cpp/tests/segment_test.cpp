#include "draftd/segment.h"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sealed/layout.h"
#include "sealed/suffix_sort.h"
#include "segment_file.h"
#include "support/xxh64.h"

namespace draftd::testing {
namespace {

using Random = std::mt19937;
using Symbols = std::vector<std::int32_t>;

std::int32_t up_to(Random& random, std::int32_t greatest) {
  return std::uniform_int_distribution<std::int32_t>(0, greatest)(random);
}

Symbols sorted_plainly(const Symbols& text) {
  Symbols order(text.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::lexicographical_compare(text.begin() + a, text.end(), text.begin() + b, text.end());
  });
  return order;
}

Symbols sorted(const Symbols& text) {
  Symbols order(text.size());
  sort_suffixes(text, text.empty() ? 0 : *std::max_element(text.begin(), text.end()) + 1, order);
  return order;
}

Symbols fibonacci_word(std::size_t length) {
  Symbols shorter{0};
  Symbols longer{0, 1};
  while (longer.size() < length) {
    Symbols next = longer;
    next.insert(next.end(), shorter.begin(), shorter.end());
    shorter = std::exchange(longer, next);
  }
  longer.resize(length);
  return longer;
}

Symbols repeated(const Symbols& unit, std::size_t length) {
  Symbols text;
  for (std::size_t i = 0; i < length; ++i) text.push_back(unit[i % unit.size()]);
  return text;
}

struct Document {
  std::vector<Token> tokens;
  std::string label;
  std::int64_t time;

  bool operator==(const Document&) const = default;
};

void write(const std::string& path, const std::vector<Document>& documents) {
  SegmentBuilder builder("fingerprint");
  for (const Document& document : documents) builder.add(document.tokens, document.label, document.time);
  builder.write(path);
}

std::vector<Document> documents_of(const Segment& segment) {
  std::vector<Document> documents;
  for (std::size_t i = 0; i < segment.documents(); ++i) {
    const SegmentDocument found = segment.document(i);
    Document document{std::vector<Token>(found.end - found.begin), std::string(found.label), found.time};
    segment.read(found.begin, document.tokens);
    documents.push_back(document);
  }
  return documents;
}

std::vector<Document> two_documents() { return {{{1, 2, 1, 2, 3}, "first", 5}, {{2, 1, 2}, "", -6}}; }

bool is_refused(const ScratchFile& file, const Bytes& bytes) {
  file.write(bytes);
  try {
    read_all(Segment::open(file.path()));
  } catch (const SegmentError&) {
    return true;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(segment_test)

BOOST_AUTO_TEST_CASE(suffixes_of_any_text_are_sorted) {
  for (unsigned seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    Symbols text(static_cast<std::size_t>(up_to(random, 60)));
    const std::int32_t greatest = up_to(random, up_to(random, 8));
    const auto period = static_cast<std::size_t>(up_to(random, 60)) + 1;
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = i < period ? up_to(random, greatest) : text[i - period];
    if (!text.empty()) text[static_cast<std::size_t>(up_to(random, static_cast<int>(text.size()) - 1))] = greatest;
    BOOST_TEST_CONTEXT("seed " << seed) { BOOST_REQUIRE(sorted(text) == sorted_plainly(text)); }
  }
}

// Long enough for the scans to look ahead, and for several levels of recursion.
BOOST_AUTO_TEST_CASE(suffixes_of_long_texts_are_sorted) {
  Random random(1);
  Symbols alike(3000);
  Symbols different(3000);
  for (std::int32_t& symbol : alike) symbol = up_to(random, 2);
  for (std::int32_t& symbol : different) symbol = up_to(random, 100000);
  for (const Symbols& text :
       {alike, different, fibonacci_word(3000), repeated({0}, 3000), repeated({1, 0}, 3000),
        repeated({0, 1, 0, 2}, 3001), repeated(Symbols(alike.begin(), alike.begin() + 700), 3000)}) {
    BOOST_CHECK(sorted(text) == sorted_plainly(text));
  }
}

// The expected value is the PyPI package xxhash's.
BOOST_AUTO_TEST_CASE(checksums_are_xxh64) {
  Bytes digests;
  Bytes bytes;
  for (unsigned i = 0; i < 256; ++i) {
    const std::uint64_t digest = xxh64(bytes);
    for (unsigned byte = 0; byte < 8; ++byte) digests.push_back(static_cast<std::uint8_t>(digest >> 8 * byte));
    bytes.push_back(static_cast<std::uint8_t>(i * 7 + 13));
  }
  BOOST_CHECK_EQUAL(xxh64({}), 0xef46db3751d8e999);
  BOOST_CHECK_EQUAL(xxh64(digests), 0xe55be4a465003a57);
}

BOOST_AUTO_TEST_CASE(a_checksum_does_not_depend_on_how_the_bytes_arrive) {
  Random random(1);
  Bytes bytes(500);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(up_to(random, 255));
  for (int attempt = 0; attempt < 200; ++attempt) {
    Xxh64 in_pieces;
    for (std::span<const std::uint8_t> rest = bytes; !rest.empty();) {
      const auto taken = std::min(rest.size(), static_cast<std::size_t>(up_to(random, 70)));
      in_pieces.update(rest.first(taken));
      rest = rest.subspan(taken);
    }
    BOOST_REQUIRE_EQUAL(in_pieces.digest(), xxh64(bytes));
  }
}

BOOST_AUTO_TEST_CASE(documents_come_back_as_they_were_added) {
  const std::vector<Document> documents{{{7}, "a", 0},
                                        {{0, INT32_MAX, 5}, "", INT64_MIN},
                                        {std::vector<Token>(1000, 3), std::string(300, 'x'), INT64_MAX}};
  const ScratchFile file;
  write(file.path(), documents);
  const auto segment = Segment::open(file.path());
  BOOST_CHECK(documents_of(*segment) == documents);
  BOOST_CHECK_EQUAL(segment->tokens(), 1004);
  BOOST_CHECK_EQUAL(segment->distinct_tokens(), 5);
  BOOST_CHECK_EQUAL(segment->fingerprint(), "fingerprint");
  BOOST_CHECK_EQUAL(segment->path(), file.path());
  BOOST_CHECK_GE(segment->memory_size(), file.read().size());
}

BOOST_AUTO_TEST_CASE(documents_without_tokens_are_skipped) {
  const ScratchFile file;
  write(file.path(), {{{}, "empty", 1}, {{4}, "one", 2}, {{}, "", 3}});
  BOOST_CHECK(documents_of(*Segment::open(file.path())) == (std::vector<Document>{{{4}, "one", 2}}));
}

BOOST_AUTO_TEST_CASE(what_is_copied_equals_what_is_added) {
  const ScratchFile first;
  write(first.path(), {{{1, 2, 3}, "a", 1}, {{900, 2}, "b", 2}, {{3, 3}, "c", 3}});
  const auto segment = Segment::open(first.path());
  SegmentBuilder builder("fingerprint");
  builder.add(*segment, 0);
  builder.add(*segment, 2);
  const ScratchFile copied;
  const ScratchFile built;
  builder.write(copied.path());
  write(built.path(), {{{1, 2, 3}, "a", 1}, {{3, 3}, "c", 3}});
  BOOST_CHECK(copied.read() == built.read());
}

BOOST_AUTO_TEST_CASE(tokens_are_ranked_by_count_and_then_by_recency) {
  const ScratchFile file;
  write(file.path(), two_documents());
  const auto segment = Segment::open(file.path());
  std::vector<std::pair<Token, std::uint32_t>> ranked;
  for (const FrequentToken& frequent : segment->frequent_tokens()) ranked.emplace_back(frequent.token, frequent.count);
  BOOST_CHECK((ranked == std::vector<std::pair<Token, std::uint32_t>>{{2, 4}, {1, 3}, {3, 1}}));
}

BOOST_AUTO_TEST_CASE(a_builder_refuses_what_it_cannot_hold) {
  SegmentBuilder builder("");
  BOOST_CHECK_THROW(builder.add(std::vector<Token>{1, -2}, "", 0), std::invalid_argument);
  BOOST_CHECK_EQUAL(builder.documents(), 0);
  const ScratchFile file;
  BOOST_CHECK_THROW(builder.write(file.path()), std::invalid_argument);
  BOOST_CHECK(!std::filesystem::exists(file.path()));
}

BOOST_AUTO_TEST_CASE(a_file_that_exists_is_never_written_to) {
  const ScratchFile file;
  file.write(Bytes{1, 2, 3});
  BOOST_CHECK_THROW(write(file.path(), two_documents()), std::system_error);
  BOOST_CHECK((file.read() == Bytes{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(reading_past_the_end_is_refused) {
  const ScratchFile file;
  write(file.path(), two_documents());
  const auto segment = Segment::open(file.path());
  std::vector<Token> tokens(5);
  BOOST_CHECK_THROW(segment->document(2), std::out_of_range);
  BOOST_CHECK_THROW(segment->read(segment->layout().slots - 4, tokens), std::out_of_range);
  BOOST_CHECK_THROW(segment->read(UINT64_MAX, tokens), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(a_missing_file_and_one_that_is_no_segment_are_told_apart) {
  const ScratchFile file;
  BOOST_CHECK_THROW(Segment::open(file.path()), std::system_error);
  for (const Bytes& bytes : {Bytes{}, Bytes(100), Bytes(1000)}) BOOST_CHECK(is_refused(file, bytes));
}

BOOST_AUTO_TEST_CASE(no_damaged_byte_goes_unnoticed) {
  const ScratchFile file;
  write(file.path(), two_documents());
  const Bytes intact = file.read();
  for (std::size_t i = 0; i < intact.size(); ++i) {
    Bytes damaged = intact;
    damaged[i] ^= 1U << i % 8;
    BOOST_TEST_CONTEXT("byte " << i) { BOOST_CHECK(is_refused(file, damaged)); }
  }
}

BOOST_AUTO_TEST_CASE(a_file_of_another_length_is_refused) {
  const ScratchFile file;
  write(file.path(), two_documents());
  const Bytes intact = file.read();
  for (std::size_t size = 0; size <= intact.size() + 1; ++size) {
    if (size == intact.size()) continue;
    Bytes cut = intact;
    cut.resize(size);
    BOOST_TEST_CONTEXT("size " << size) {
      BOOST_CHECK(is_refused(file, cut));
      reseal(cut);
      BOOST_CHECK(is_refused(file, cut));
    }
  }
}

// Whoever makes a file to do harm gets its checksums right.
BOOST_AUTO_TEST_CASE(a_hostile_file_is_refused_or_can_be_read) {
  const ScratchFile file;
  write(file.path(), {{{1, 2, 1, 2, 3}, "first", 5}, {{2, 1, 2}, "", -6}, {std::vector<Token>(40, 9), "third", 7}});
  const Bytes intact = file.read();
  std::size_t refused = 0;
  for (std::size_t i = 0; i < intact.size(); ++i) {
    for (const std::uint8_t change : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      Bytes hostile = intact;
      hostile[i] ^= change;
      reseal(hostile);
      if (is_refused(file, hostile)) ++refused;
    }
  }
  BOOST_CHECK_GT(refused, intact.size());
}

BOOST_AUTO_TEST_CASE(an_error_names_file_section_and_what_is_wrong) {
  const ScratchFile file;
  write(file.path(), two_documents());
  const Bytes intact = file.read();
  Header header;
  std::memcpy(&header, intact.data(), sizeof header);
  const auto message = [&](Section section, std::uint64_t at, std::uint8_t value) -> std::string {
    Bytes hostile = intact;
    hostile[header.place(section).offset + at] = value;
    reseal(hostile);
    file.write(hostile);
    try {
      Segment::open(file.path());
    } catch (const SegmentError& error) {
      return error.what();
    }
    return "opened";
  };
  const std::string start = file.path() + ": ";
  BOOST_CHECK_EQUAL(message(Section::kDocumentEnds, 0, 1), start + "document ends: out of order at document 0");
  BOOST_CHECK_EQUAL(message(Section::kDocumentEnds, 4, 9),
                    start + "document ends: the last one is not the end of the text but 9");
  BOOST_CHECK_EQUAL(message(Section::kLabelEnds, 0, 6), start + "label ends: out of order at document 1");
  BOOST_CHECK_EQUAL(message(Section::kLabelEnds, 4, 6), start + "labels: 5 bytes, expected 6");
  BOOST_CHECK_EQUAL(message(Section::kText, 0, 1), start + "text: no separator in slot 0");
  BOOST_CHECK_EQUAL(message(Section::kEntries, 0, 0),
                    start + "entries: names a separator, or a token that has one already: number 0");
  BOOST_CHECK_EQUAL(message(Section::kKeys, 7, 1), start + "keys: the last one is too large");
  BOOST_CHECK_EQUAL(message(Section::kFrequentTokens, 12, 5), start + "frequent tokens: out of order at rank 1");
  BOOST_CHECK_EQUAL(message(Section::kFrequentTokens, 3, 255), start + "frequent tokens: a negative id at rank 0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
