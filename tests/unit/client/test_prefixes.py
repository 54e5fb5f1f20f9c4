"""Engines that state whole texts get what engines get that say what is new."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.client import Reason
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.client.prefixes import PrefixRequests
from draftd.config import DraftingSettings, EngineSettings
from draftd.engine import Engine

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]  # goes on with 4, 5, 6, ...


UNSHARED: dict[str, OpenOptions] = {"r": {"share": "none"}}


def text_alone() -> Engine:
    """An engine whose drafts depend on text and on nothing that it learned."""
    return Engine(EngineSettings(), DraftingSettings(learning=False, priors="none"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = text_alone()
    yield engine
    engine.close()


@pytest.fixture
def client(engine: Engine) -> LocalClient:
    return LocalClient(engine)


@pytest.fixture
def requests(client: LocalClient) -> PrefixRequests:
    return PrefixRequests(client)


def test_a_text_that_extends_the_known_one_is_a_commit(requests: PrefixRequests, client: LocalClient) -> None:
    assert requests.drafts({"r": TEXT}, 2)["r"].tokens.tolist() == [4, 5]
    draft = requests.drafts({"r": [*TEXT, 4, 5]}, 2)["r"]
    assert (draft.tokens.tolist(), draft.base, draft.epoch) == ([6, 7], len(TEXT) + 2, 1)
    assert client.health().counters.syncs == 1


def test_the_same_text_again_gets_the_same_draft(requests: PrefixRequests) -> None:
    first = requests.drafts({"r": TEXT}, 2)["r"]
    again = requests.drafts({"r": np.array(TEXT, np.int64)}, 2)["r"]
    assert (again.tokens.tolist(), again.base, again.epoch) == (first.tokens.tolist(), first.base, first.epoch)


@pytest.mark.parametrize(
    "other",
    [TEXT[:-1], [*TEXT, 4], [*TEXT, 9, 9, 1, 2], [9, *TEXT], []],
    ids=["shorter than the prompt", "part of the output", "other output", "other prompt", "nothing"],
)
def test_a_text_that_disagrees_gets_what_a_fresh_request_gets(requests: PrefixRequests, other: list[int]) -> None:
    for text in (TEXT, [*TEXT, 4, 5, 6], other):
        draft = requests.drafts({"r": text}, 2, options=UNSHARED)["r"]
    expected = PrefixRequests(LocalClient(text_alone())).drafts({"r": other}, 2)["r"]
    assert (draft.tokens.tolist(), draft.base) == (expected.tokens.tolist(), len(other))
    assert (draft.reason, draft.epoch) == (expected.reason, 2)


def test_what_was_output_stays_output_when_part_of_it_is_taken_back(
    client: LocalClient, requests: PrefixRequests
) -> None:
    requests.drafts({"r": [21, 22, 23]})
    requests.drafts({"r": [21, 22, 23, 31, 32, 33, 34]})
    requests.drafts({"r": [21, 22, 23, 31, 32]})
    requests.close("r")
    reader = client.open("reader", [21, 22], wait=True)
    shared = set(reader.step([31], 8).tokens.tolist())
    assert shared == {31, 32}, "what was left of the output, and no prompt"


def test_a_step_of_many_is_one_message(requests: PrefixRequests, client: LocalClient) -> None:
    requests.drafts({"a": TEXT, "b": TEXT[3:]})
    steps = client.health().counters.steps
    drafts = requests.drafts({"b": [*TEXT[3:], 4], "c": TEXT, "a": [*TEXT, 4]}, 1)
    assert {request_id: draft.tokens.tolist() for request_id, draft in drafts.items()} == {"b": [5], "c": [4], "a": [5]}
    assert client.health().counters.steps == steps + 1


def test_what_was_verified_is_counted(requests: PrefixRequests, engine: Engine) -> None:
    requests.drafts({"r": TEXT}, 3)
    requests.drafts({"r": [*TEXT, 4, 9]}, 3, verified={"r": 1})
    figures = engine.statistics()
    assert (figures.draft_tokens, figures.accepted_tokens) == (1, 1)


def test_options_are_stated_at_the_opening(requests: PrefixRequests) -> None:
    options: dict[str, OpenOptions] = {"r": {"stop_ids": [5]}}
    assert requests.drafts({"r": TEXT}, 3, options=options)["r"].tokens.tolist() == [4, 5]


def test_those_longest_not_asked_for_make_room(client: LocalClient) -> None:
    requests = PrefixRequests(client, most=2)
    for request_id in "aba":
        requests.drafts({request_id: TEXT})
    requests.drafts({"c": TEXT})
    assert repr(requests) == "PrefixRequests(2 open, at most 2)"
    assert requests.extends("b", TEXT) is None
    assert requests.extends("a", [*TEXT, 4, 5]) == 2
    assert requests.extends("a", TEXT[:3]) is None
    everybody = requests.drafts(dict.fromkeys("abcd", TEXT), 1)
    assert [draft.tokens.tolist() for draft in everybody.values()] == [[4]] * 4


def test_closing_what_is_not_open_does_nothing(requests: PrefixRequests) -> None:
    requests.close("nobody")
    assert repr(requests) == "PrefixRequests(0 open, at most 1024)"


def test_text_that_cannot_be_meant_is_refused_before_anything_changes(requests: PrefixRequests) -> None:
    with pytest.raises(ValueError, match=r"text of request 'b' is 1 dimensions of <U1; give a row of token ids"):
        requests.drafts({"a": TEXT, "b": ["x"]})
    with pytest.raises(ValueError, match="verified has request 'zz', which is not among the texts; give its text too"):
        requests.drafts({"a": TEXT}, verified={"zz": 1})
    assert repr(requests) == "PrefixRequests(0 open, at most 1024)"
    with pytest.raises(ValueError, match="most is 0; keep at least 1 request open"):
        PrefixRequests(LocalClient(Engine(EngineSettings())), most=0)


def test_an_id_outside_the_vocabulary_is_refused_and_only_that_row(engine: Engine) -> None:
    requests = PrefixRequests(LocalClient(engine, vocabulary_size=100))
    drafts = requests.drafts({"good": TEXT, "bad": [1, 2, 2**40, 1, 2], "negative": [1, 2, -1, 1, 2]}, 1)
    assert drafts["good"].tokens.tolist() == [4]
    assert drafts["bad"].reason == drafts["negative"].reason == Reason.REFUSED


@given(st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(1, 3), max_size=4)), min_size=1, max_size=8))
def test_any_history_of_texts_ends_where_a_fresh_request_would(edits: list[tuple[int, list[int]]]) -> None:
    """Each edit keeps the first so many tokens and appends others."""
    engine, fresh_engine = text_alone(), text_alone()
    requests = PrefixRequests(LocalClient(engine))
    text = [1, 2, 3]
    for kept, appended in edits:
        text = [*text[:kept], *appended]
        draft = requests.drafts({"r": text}, 4, options=UNSHARED)["r"]
    fresh = PrefixRequests(LocalClient(fresh_engine)).drafts({"r": text}, 4)["r"]
    assert (draft.base, draft.tokens.tolist()) == (len(text), fresh.tokens.tolist())
    assert draft.parents.tolist() == fresh.parents.tolist()
    engine.close()
    fresh_engine.close()
