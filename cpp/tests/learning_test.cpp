// What an engine does with what its namespaces learned.
#include <boost/test/unit_test.hpp>
#include <stdexcept>

#include "learned.h"
#include "one_namespace.h"

namespace draftd::testing {

BOOST_AUTO_TEST_SUITE(learning_test)

BOOST_AUTO_TEST_CASE(what_was_learned_belongs_to_one_namespace) {
  OneNamespace one;
  one.engine.create_namespace();
  BOOST_CHECK(one.engine.lessons().empty());
  BOOST_CHECK(one.engine.learned(0).empty());
  const auto saved = taught(1, 100).save();
  one.engine.restore_learned(1, saved, 0.0);
  BOOST_CHECK(one.engine.learned(0).empty());
  BOOST_CHECK(one.engine.learned(1) == saved);
  const auto lessons = one.engine.lessons();
  BOOST_REQUIRE_EQUAL(lessons.size(), 1U);
  BOOST_CHECK_EQUAL(lessons[0].first, 1U);
  BOOST_CHECK_EQUAL(lessons[0].second, 100U);
  one.engine.forget_learned(1);
  BOOST_CHECK(one.engine.learned(1).empty());
  BOOST_CHECK_THROW(one.engine.learned(2), std::out_of_range);
  BOOST_CHECK_THROW(one.engine.restore_learned(2, saved, 0.0), std::out_of_range);
  BOOST_CHECK_THROW(one.engine.forget_learned(2), std::out_of_range);
  BOOST_CHECK_THROW(one.engine.restore_learned(0, std::span(saved).subspan(1), 0.0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(without_learning_nothing_is_restored) {
  EngineLimits limits = kAmple;
  limits.learning = false;
  OneNamespace one(limits);
  one.engine.restore_learned(0, taught(1, 100).save(), 0.0);
  BOOST_CHECK(one.engine.learned(0).empty());
}

BOOST_AUTO_TEST_CASE(priors_that_are_no_model_are_refused) {
  const std::vector<std::uint8_t> nonsense(100);
  BOOST_CHECK_THROW(Engine(kAmple, false, nonsense), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(past_the_memory_limit_what_was_longest_untaught_goes) {
  EngineLimits limits = kAmple;
  limits.memory = 4 << 20;
  limits.history = 1 << 20;
  Engine engine(limits, false);
  const auto saved = taught(1, 100).save();
  for (std::uint32_t number = 0; number < 100; ++number) {
    engine.create_namespace();
    engine.restore_learned(number, saved, number);
  }
  const auto kept = engine.lessons();
  BOOST_CHECK_LE(kept.size() * Model().memory_size(), limits.memory);
  BOOST_CHECK_GE((kept.size() + 2) * Model().memory_size(), limits.memory);
  BOOST_CHECK_EQUAL(kept.front().first + kept.size(), 100U);

  // A request that was used since takes their place, and they take that of one that was not.
  Verifier verifier(engine, 1);
  verifier.now = 1000.0;
  verifier.open(1, ascending(0, 14'000));
  engine.index_slice(SIZE_MAX);
  const auto left = engine.lessons();
  BOOST_CHECK_LT(left.size(), kept.size());
  BOOST_CHECK_EQUAL(left.back().first, 99U);
  for (std::uint32_t number = 0; number < 100; ++number) engine.restore_learned(number, saved, 2000.0 + number);
  BOOST_CHECK(verifier.step(1, 0, {}, 4).status == Status::kNeedSync);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
