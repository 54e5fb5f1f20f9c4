#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "draftd/model.h"
#include "learned.h"
#include "support/xxh64.h"

namespace draftd::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kChecked = 16;  // where the checksum begins
constexpr std::size_t kHeader = 56;

// Makes the checksum right again, so that what is behind it is looked at.
void reseal(Bytes& bytes) {
  const std::uint64_t checksum = xxh64(std::span(bytes).subspan(kChecked));
  std::memcpy(bytes.data() + 8, &checksum, sizeof(checksum));
}

template <typename T>
void put(Bytes& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

bool same(const ModelTables& a, const ModelTables& b) {
  return a.hits == b.hits && a.trials == b.trials && a.agreement == b.agreement && a.standing == b.standing &&
         a.correction == b.correction && a.lessons == b.lessons;
}

// What load() says of the bytes; empty: it takes them.
std::string refusal(const Bytes& bytes) {
  try {
    Model::load(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool says(const Bytes& bytes, const std::string& part) {
  const std::string said = refusal(bytes);
  BOOST_TEST_MESSAGE(said);
  return said.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(saving_test)

BOOST_AUTO_TEST_CASE(a_model_comes_back_as_it_was_and_learns_on_alike) {
  Model model = taught(1, 3000);
  const std::unique_ptr<Model> loaded = Model::load(model.save());
  BOOST_CHECK(same(loaded->tables(), model.tables()));
  std::mt19937 random(2);
  for (int lesson = 0; lesson < 1000; ++lesson) {
    const std::vector<Candidate> candidates{random_candidate(random, 1), random_candidate(random, 2)};
    BOOST_REQUIRE_EQUAL(probability(*loaded, candidates[0]), probability(model, candidates[0]));
    loaded->learn(candidates, 1);
    model.learn(candidates, 1);
    loaded->learn_survival(0.3, lesson % 3 == 0);
    model.learn_survival(0.3, lesson % 3 == 0);
  }
  BOOST_CHECK(same(loaded->tables(), model.tables()));
  BOOST_CHECK(loaded->save() == model.save());
}

BOOST_AUTO_TEST_CASE(only_cells_that_learned_take_room) {
  const std::size_t untaught = Model().save().size();
  BOOST_CHECK_LT(untaught, 27'000U);  // the weights
  BOOST_CHECK_GT(taught(1, 10).save().size(), untaught);
  BOOST_CHECK_LE(taught(1, 10).save().size(), untaught + std::size_t{10} * 5 * 7 * 10);
}

BOOST_AUTO_TEST_CASE(what_was_cut_or_changed_is_refused) {
  const Bytes intact = taught(3, 50).save();
  BOOST_CHECK_EQUAL(refusal(intact), "");
  for (std::size_t length = 0; length < intact.size(); length += length < 64 ? 1 : 997) {
    BOOST_CHECK_NE(refusal(Bytes(intact.begin(), intact.begin() + static_cast<std::ptrdiff_t>(length))), "");
  }
  for (std::size_t place = 0; place < intact.size(); place += place < 64 ? 1 : 997) {
    Bytes changed = intact;
    changed[place] ^= 1;
    BOOST_CHECK_NE(refusal(changed), "");
  }
}

BOOST_AUTO_TEST_CASE(a_right_checksum_does_not_help_wrong_numbers) {
  const Bytes intact = taught(3, 50).save();
  const auto with = [&](std::size_t offset, auto value) {
    Bytes changed = intact;
    put(changed, offset, value);
    reseal(changed);
    return changed;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::uint32_t stored = 0;
  std::memcpy(&stored, intact.data() + 48, sizeof(stored));
  const std::size_t cells = intact.size() - stored * sizeof(std::uint16_t);
  const std::size_t trials = cells - stored * sizeof(float);
  const std::size_t hits = trials - stored * sizeof(float);

  BOOST_CHECK(says(with(0, 'D'), "does not begin with draftdM1"));
  BOOST_CHECK(says(with(16, std::uint64_t{1}), "another version"));
  BOOST_CHECK(says(with(24, std::uint64_t{1} << 63), "lessons are more than can be given"));
  BOOST_CHECK(says(with(32, std::uint32_t{5}), "another version"));
  BOOST_CHECK(says(with(48, std::uint32_t{stored - 1}), "its header says"));
  BOOST_CHECK(says(with(48, UINT32_MAX), "more than there are"));
  BOOST_CHECK(says(with(kHeader, nan), "weight by agreement 0 is"));
  BOOST_CHECK(says(with(kHeader, 1e7F), "weight by agreement 0 is"));
  BOOST_CHECK(
      says(with(hits - sizeof(float), -std::numeric_limits<float>::infinity()), "correction of survival 71 is"));
  BOOST_CHECK(says(with(hits, nan), "hits of"));
  BOOST_CHECK(says(with(hits, -1.0F), "hits of"));
  BOOST_CHECK(says(with(hits, 1e9F), "hits of"));
  BOOST_CHECK(says(with(trials, 0.0F), "trials"));
  BOOST_CHECK(says(with(trials, std::numeric_limits<float>::infinity()), "trials"));
  BOOST_CHECK(says(with(cells, std::uint16_t{0}), "entry 0 is of cell 0"));
  BOOST_CHECK(says(with(cells, UINT16_MAX), "entry 0 is of cell 65535"));
  BOOST_CHECK(says(with(cells + 2, std::uint16_t{2}), "entry 1 is of cell 2"));
}

BOOST_AUTO_TEST_CASE(tables_of_another_size_are_refused) {
  ModelTables tables = Model().tables();
  tables.standing.pop_back();
  BOOST_CHECK_THROW(Model{tables}, std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
