// What a property test in Python can't reach of an explanation: memory, and threads.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "one_namespace.h"
#include "sealed.h"

namespace draftd::testing {
namespace {

RequestOptions of_group(const std::string& group) {
  RequestOptions options;
  options.group = group;
  return options;
}

// Whether it says that 40 follows, and nothing that can't be.
bool makes_sense(const Explanation& explanation) {
  if (explanation.nodes.empty() || explanation.nodes[0].node.token != 40) return false;
  const auto possible = [](const Evidence& evidence) {
    const bool counted = evidence.count > 0 && evidence.count <= evidence.total;
    return counted && evidence.last.has_value() == (evidence.source.kind != Source::kFill);
  };
  return std::ranges::all_of(explanation.nodes,
                             [&](const ExplainedNode& node) { return std::ranges::all_of(node.evidence, possible); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(explain_test)

BOOST_AUTO_TEST_CASE(to_be_explained_is_not_to_be_used) {
  EngineLimits limits = kAmple;
  limits.memory = 1 << 20;
  OneNamespace one(limits);
  one.writer.now = 1.0;
  one.share(ascending(0, 10), "request", 0, sharing_with("longest unused"));
  one.writer.now = 2.0;
  one.share(ascending(0, 10), "request", 0, sharing_with("used later"));
  const std::vector<Token> text = ascending(0, 5);
  BOOST_CHECK(!one.engine.explain(0, of_group("longest unused"), text, {}).nodes.empty());
  while (one.engine.histories().size() == 3) {
    one.writer.now += 1.0;
    one.share(ascending(0, 5000), "request");
  }
  for (const HistoryState& state : one.engine.histories()) BOOST_CHECK_NE(state.history.group, "longest unused");
}

BOOST_AUTO_TEST_CASE(histories_and_corpora_may_change_meanwhile) {
  OneNamespace one;
  one.share(ascending(0, 100), "first");
  std::atomic<bool> done = false;
  std::thread changing([&] {
    for (int round = 0; round < 40; ++round) {
      one.share(ascending(0, 300), std::to_string(round));
      one.engine.publish_corpus(0, 1, {sealed({ascending(0, 50)})});
      if (round % 4 == 0) one.engine.freeze_history(own());
      if (round % 4 == 2) one.engine.publish_history(own(), {sealed({ascending(0, 100)})}, true, 0.0);
    }
    done = true;
  });
  const std::vector<Token> text = ascending(0, 40);
  int wrong = 0;
  while (!done) {
    if (!makes_sense(one.engine.explain(0, {}, text, {}))) ++wrong;
  }
  changing.join();
  BOOST_CHECK_EQUAL(wrong, 0);
}

BOOST_AUTO_TEST_CASE(an_invalid_id_is_named) {
  OneNamespace one;
  RequestOptions options;
  options.vocabulary = 10;
  const std::vector<Token> text{1, 2, 10};
  BOOST_CHECK_EXCEPTION(one.engine.explain(0, options, text, {}), std::invalid_argument, [](const auto& error) {
    return std::string(error.what()) == "token 2 is 10, outside [0, 10)";
  });
  BOOST_CHECK_THROW(one.engine.explain(1, {}, {}, {}), std::out_of_range);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace draftd::testing
