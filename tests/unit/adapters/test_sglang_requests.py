"""What SglangRequests makes of a batch, and whom it takes for finished; tests/engines has SGLang's own classes."""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from draftd.adapters.settings import adapter_settings
from draftd.adapters.sglang_requests import SglangRequests, open_options
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.engine import Engine
from draftd.wire import Frame

PROMPT = [1, 2, 3, 4, 5, 1, 2]  # goes on with 3, 4, 5, 1, 2


class Request:
    """The fields of a Req that are read."""

    def __init__(self, rid: str = "r", prompt: Sequence[int] = PROMPT, output: Sequence[int] = (3,)) -> None:
        self.rid = rid
        self.origin_input_ids_unpadded = array("q", prompt)
        self.output_ids = array("q", output)
        self.over = False

    def finished(self) -> bool:
        return self.over


@pytest.fixture
def requests(engine: Engine) -> SglangRequests:
    return SglangRequests(LocalClient(engine), 4, lambda _: OpenOptions(shape="chain"))


def sent(frames: list[Frame]) -> list[tuple[list[int], int]]:
    """Of each message: the tokens that it commits, and how many requests it closes."""
    told = [(array("i", frame.step.commit.tokens).tolist(), len(frame.step.close.request) // 4) for frame in frames]
    frames.clear()
    return told


def test_a_tree_has_the_last_token_as_its_root_and_one_width(requests: SglangRequests) -> None:
    trees = requests.trees([Request("a"), Request("b", [7, 8]), Request("c")], [[], [], [4, 5]])
    assert trees.tokens.tolist() == [[3, 4, 5, 1], [3, 0, 0, 0], [5, 1, 2, 3]]
    assert trees.parents.tolist() == [[0, 0, 1, 2], [0, 1, 2, 3], [0, 0, 1, 2]]


def test_a_step_says_what_is_new(requests: SglangRequests, frames: list[Frame]) -> None:
    request = Request()
    requests.trees([request], [[4, 5]])  # emitted, but not processed yet
    assert sent(frames)[-1] == ([3, 4, 5], 0)
    request.output_ids.extend([4, 5])
    requests.trees([request], [[1]])
    assert sent(frames) == [([1], 0)]
    request.output_ids.extend([1, 2])
    requests.trees([request], [[]])
    assert sent(frames) == [([2], 0)]


def test_who_finishes_says_the_rest_and_closes_at_once(requests: SglangRequests, frames: list[Frame]) -> None:
    request = Request()
    requests.trees([request], [[]])
    frames.clear()
    request.output_ids.extend([4, 5])
    request.over = True
    requests.finish("r")
    assert sent(frames) == [([4, 5], 0), ([], 1)]
    requests.finish("r")
    requests.finish("unknown")
    assert frames == []


def test_who_leaves_the_batch_unfinished_comes_back(requests: SglangRequests, frames: list[Frame]) -> None:
    retracted, other = Request("a"), Request("b")
    requests.trees([retracted, other], [[], []])
    frames.clear()
    requests.trees([other], [[]])
    retracted.output_ids.extend([4, 5])
    requests.trees([retracted, other], [[], []])
    assert sent(frames) == [([], 0), ([4, 5], 0)]


def test_who_leaves_the_batch_finished_is_closed(requests: SglangRequests, frames: list[Frame]) -> None:
    """A request that its prefill ended is not told of."""
    ended, other = Request("a"), Request("b")
    requests.trees([ended, other], [[], []])
    frames.clear()
    ended.over = True
    requests.trees([other], [[]])
    assert sent(frames) == [([], 0), ([], 1), ([], 0)]


def test_who_is_gone_is_closed(requests: SglangRequests, frames: list[Frame]) -> None:
    """Aborted while it was retracted: nobody says so."""
    gone, other = Request("a"), Request("b")
    requests.trees([gone, other], [[], []])
    frames.clear()
    del gone
    requests.trees([other], [[]])
    assert sum(closes for _, closes in sent(frames)) == 1


def test_another_request_of_the_same_id_is_another(requests: SglangRequests, frames: list[Frame]) -> None:
    first = Request()
    requests.trees([first], [[]])
    frames.clear()
    assert requests.trees([Request(output=[3, 4, 5, 1])], [[]]).tokens.tolist() == [[1, 2, 3, 4]]
    assert sum(closes for _, closes in sent(frames)) == 1


@pytest.mark.parametrize("late", [False, True], ids=["at once", "while the first runs"])
def test_of_two_requests_of_one_id_the_first_is_drafted_for(
    requests: SglangRequests, frames: list[Frame], late: bool
) -> None:
    first, second, other = Request(), Request(output=[9]), Request("other")
    if late:
        requests.trees([first, other], [[], []])
    trees = requests.trees([first, second, other], [[], [4], []])
    assert trees.tokens.tolist() == [[3, 4, 5, 1], [4, 0, 0, 0], [3, 4, 5, 1]]
    assert sum(closes for _, closes in sent(frames)) == 0
    first.over = True
    requests.finish("r")
    assert requests.trees([second, other], [[4], []]).tokens[:, 0].tolist() == [4, 3]
    assert requests.trees([second, other], [[4, 5], [4]]).sizes.tolist()[1] == 4


def test_ids_that_look_alike_when_spelt_out_are_two(requests: SglangRequests) -> None:
    trees = requests.trees([Request("\ud800"), Request(r"\ud800", output=[3, 4])], [[], []])
    assert trees.tokens.tolist() == [[3, 4, 5, 1], [4, 5, 1, 2]]


def test_a_request_that_can_not_be_opened_costs_its_own_row_alone(engine: Engine, frames: list[Frame]) -> None:
    def options_of(request: Request) -> OpenOptions:
        return OpenOptions(shape="chain", adapter="\ud800" if request.rid == "wrong" else "")

    requests = SglangRequests(LocalClient(engine), 4, options_of)
    batch = [Request("wrong"), Request()]
    for _ in range(2):
        assert requests.trees(batch, [[], []]).tokens.tolist() == [[3, 0, 0, 0], [3, 4, 5, 1]]
    frames.clear()
    requests.finish("wrong")
    assert frames == []


def test_an_id_that_can_not_be_sent_is_spelt_out(requests: SglangRequests, frames: list[Frame]) -> None:
    request = Request("half a pair: \ud800")
    assert requests.trees([request], [[]]).sizes.tolist() == [4]
    assert [sync.request_id for frame in frames for sync in frame.step.sync] == ["half a pair: \\ud800"]
    requests.finish(request.rid)
    assert sum(closes for _, closes in sent(frames)) == 1


@pytest.mark.parametrize(
    "output",
    [[3], [9], [3, 4, 9], [9, 4, 5]],
    ids=["shorter", "another token", "as long", "as long, and the same at its end"],
)
def test_an_output_that_starts_anew_opens_again(
    requests: SglangRequests, frames: list[Frame], output: list[int]
) -> None:
    """So it is with requests of embeddings, when they are retracted."""
    request = Request(output=[3, 4, 5])
    requests.trees([request], [[]])
    frames.clear()
    request.output_ids = array("q", output)
    assert requests.trees([request], [[]]).tokens[0, 0] == output[-1]
    assert sent(frames)[-1] == (output, 0)


def test_an_output_that_starts_anew_before_it_was_processed_opens_again(
    requests: SglangRequests, frames: list[Frame]
) -> None:
    request = Request(output=[])
    requests.trees([request], [[3]])
    frames.clear()
    request.output_ids = array("q")
    assert requests.trees([request], [[9]]).tokens[0, 0] == 9
    assert sent(frames)[-1] == ([9], 0)


def test_an_output_that_is_behind_what_was_stated_goes_on(requests: SglangRequests, frames: list[Frame]) -> None:
    request = Request()
    requests.trees([request], [[4, 5]])
    frames.clear()
    assert requests.trees([request], [[4, 5]]).tokens.tolist() == [[5, 1, 2, 3]]
    assert sent(frames) == [([], 0)]


def test_an_output_that_is_changed_in_place_opens_again(requests: SglangRequests) -> None:
    request = Request(output=[3, 4, 5])
    requests.trees([request], [[]])
    request.output_ids[-1] = 9
    assert requests.trees([request], [[]]).tokens[0, 0] == 9


def test_an_output_in_another_array_goes_on(requests: SglangRequests, frames: list[Frame]) -> None:
    request = Request(output=[3, 4, 5])
    requests.trees([request], [[]])
    frames.clear()
    request.output_ids = array("q", [3, 4, 5, 1])
    requests.trees([request], [[]])
    assert sent(frames) == [([1], 0)]


def test_who_finishes_with_another_output_closes_with_what_was_known(
    requests: SglangRequests, frames: list[Frame]
) -> None:
    request = Request(output=[3, 4, 5])
    requests.trees([request], [[]])
    frames.clear()
    request.output_ids = array("q", [3, 4])
    requests.finish("r")
    assert sent(frames) == [([], 0), ([], 1)]


@pytest.mark.parametrize(
    ("tokenizer", "eos_token_ids", "stop_token_ids", "ignore_eos", "expected"),
    [
        (None, None, None, False, []),
        (None, {7}, {9, 8}, False, [7, 8, 9]),
        (None, {-1, 7}, {2**31, 10**12}, False, [7]),
        (SimpleNamespace(eos_token_id=2, additional_stop_token_ids={3}), {7}, None, False, [2, 3, 7]),
        (SimpleNamespace(eos_token_id=None, additional_stop_token_ids=None), None, {8}, False, [8]),
        (SimpleNamespace(eos_token_id=2, additional_stop_token_ids={3}), {7}, {8}, True, []),
    ],
)
def test_stop_ids_are_those_at_which_sglang_stops(
    tokenizer: object, eos_token_ids: object, stop_token_ids: object, ignore_eos: bool, expected: list[int]
) -> None:
    sampling = SimpleNamespace(
        stop_token_ids=stop_token_ids, ignore_eos=ignore_eos, max_new_tokens=9, top_k=5, temperature=0.7
    )
    request = SimpleNamespace(sampling_params=sampling, tokenizer=tokenizer, eos_token_ids=eos_token_ids)
    stated = open_options(request, adapter_settings(share="all"), adapter="poet", shape="chain")
    assert stated["stop_ids"] == expected
    assert (stated["adapter"], stated["share"], stated["shape"]) == ("poet", "all", "chain")
    assert (stated["max_new_tokens"], stated["temperature"]) == (9, 0.7)


def test_a_limit_between_two_lengths_is_the_longer_one() -> None:
    sampling = SimpleNamespace(stop_token_ids=None, ignore_eos=True, max_new_tokens=8.5, top_k=5, temperature=0.7)
    stated = open_options(SimpleNamespace(sampling_params=sampling), adapter_settings(), adapter="", shape="chain")
    assert stated["max_new_tokens"] == 9
