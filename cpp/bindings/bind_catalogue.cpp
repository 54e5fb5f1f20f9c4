#include "draftd/catalogue.h"

#include "bind.h"

namespace py = pybind11;

namespace draftd::bindings {

void bind_catalogue(py::module_& module) {
  module.def("catalogue", [] {
    const auto number = [](auto code) { return py::int_(static_cast<int>(code)); };
    py::dict status;
    py::dict reason;
    py::dict kind;
    py::dict share;
    py::dict source;
    py::dict preset;
    status["OK"] = number(Status::kOk);
    status["NEED_SYNC"] = number(Status::kNeedSync);
    status["STALE_EPOCH"] = number(Status::kStaleEpoch);
    status["INVALID_TOKEN"] = number(Status::kInvalidToken);
    status["LIMIT_EXCEEDED"] = number(Status::kLimitExceeded);
    reason["NOT_EMPTY"] = number(Reason::kNotEmpty);
    reason["NO_MATCH"] = number(Reason::kNoMatch);
    reason["NOT_ASKED"] = number(Reason::kNotAsked);
    reason["BELOW_THRESHOLD"] = number(Reason::kBelowThreshold);
    reason["STOPPED"] = number(Reason::kStopped);
    reason["LENGTH_LIMIT"] = number(Reason::kLengthLimit);
    reason["BUDGET_SPENT"] = number(Reason::kBudgetSpent);
    reason["REFUSED"] = number(Reason::kRefused);
    reason["NOT_WORTH_IT"] = number(Reason::kNotWorthIt);
    reason["RESTING"] = number(Reason::kResting);
    kind["TREE"] = number(TailKind::kTree);
    kind["CHAIN"] = number(TailKind::kChain);
    kind["TAPE"] = number(TailKind::kTape);
    share["OUTPUTS"] = number(Share::kOutputs);
    share["GROUP"] = number(Share::kGroup);
    share["ALL"] = number(Share::kAll);
    share["NOTHING"] = number(Share::kNothing);
    source["OWN_TEXT"] = number(Source::kOwnText);
    source["SHARED_HISTORY"] = number(Source::kSharedHistory);
    source["GROUP_HISTORY"] = number(Source::kGroupHistory);
    source["CORPUS"] = number(Source::kCorpus);
    source["FILL"] = number(Source::kFill);
    source["DRAFT_SOURCE"] = number(Source::kDraftSource);
    preset["LEARNED"] = number(Preset::kLearned);
    preset["SUFFIX_DECODING"] = number(Preset::kSuffixDecoding);
    preset["NGRAM_BFS"] = number(Preset::kNgramBfs);
    preset["NGRAM_PROB"] = number(Preset::kNgramProb);
    py::dict all;
    all["Status"] = status;
    all["Reason"] = reason;
    all["TailKind"] = kind;
    all["Share"] = share;
    all["Source"] = source;
    all["Preset"] = preset;
    return all;
  });
}

}  // namespace draftd::bindings
