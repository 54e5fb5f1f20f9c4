"""Drafts of draftd, as the verifier asks for them."""

from collections.abc import Iterator

import pytest

from draftd.client.local import LocalClient
from draftd.config import DraftingSettings, EngineSettings
from draftd.engine import Engine
from draftd.verify.drafts import ClientDrafts, NoDrafts

TEXT = [5, 6, 7, 8, 9, 10, 11, 12]
STOP = 9


@pytest.fixture
def client() -> Iterator[LocalClient]:
    engine = Engine(EngineSettings(), DraftingSettings())
    yield LocalClient(engine, vocabulary_size=20)
    engine.close()


def test_a_step_commits_what_was_emitted_and_drafts_for_all_requests(client: LocalClient) -> None:
    drafts = ClientDrafts(client, nodes=3, shape="chain")
    for request_id in ("a", "b"):
        drafts.open(request_id, TEXT, max_new_tokens=20, stop_ids=[])
    client.open("settles", [], wait=True)
    proposals = drafts.propose({"a": [5], "b": [8]}, {})
    assert proposals["a"].tokens.tolist() == [6, 7, 8]
    assert proposals["b"].tokens.tolist() == [9, 10, 11]
    assert proposals["b"].parents.tolist() == [-1, 0, 1]
    assert client.health().counters.steps == 2  # the settling one, and one for both


def test_drafts_end_at_stop_ids_and_before_the_last_token(client: LocalClient) -> None:
    drafts = ClientDrafts(client, nodes=8, shape="chain")
    drafts.open("stops", TEXT, max_new_tokens=20, stop_ids=[STOP])
    drafts.open("short", TEXT, max_new_tokens=3, stop_ids=[])
    client.open("settles", [], wait=True)
    proposals = drafts.propose({"stops": [6], "short": [6]}, {})
    assert proposals["stops"].tokens.tolist() == [7, 8, STOP]
    assert proposals["short"].tokens.tolist() == [7]


def test_a_closed_request_is_history_to_the_last_token(client: LocalClient) -> None:
    drafts = ClientDrafts(client, nodes=4, shape="chain")
    drafts.open("first", [1, 2], max_new_tokens=20, stop_ids=[])
    drafts.propose({"first": [13, 14]}, {})
    drafts.close("first", [15, 16])
    client.open("settles", [], wait=True)
    drafts.open("second", [1, 2], max_new_tokens=20, stop_ids=[])
    proposals = drafts.propose({"second": [13, 14]}, {})
    assert proposals["second"].tokens.tolist()[:2] == [15, 16]


def test_no_drafts_are_no_drafts() -> None:
    drafts = NoDrafts()
    drafts.open("a", TEXT, max_new_tokens=1, stop_ids=[])
    proposals = drafts.propose({"a": []}, {})
    drafts.close("a", [1])
    assert [len(proposal.tokens) for proposal in proposals.values()] == [0]
