"""A draft source beside the indexes: it is asked where these have little, and costs nothing where it has nothing."""

import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from draftd.client import Request
from draftd.client.local import LocalClient
from draftd.config import EngineSettings, SourceSettings
from draftd.engine import Engine
from draftd.observe.facts import REGISTRY
from draftd.replay.verification import verify
from draftd.sources import Batch, Lane, Proposals, SourceError
from draftd.wire import Namespace, Source
from tests.faults.process import until
from tests.unit.engine.hybrid import NOTHING, Script, Scripted, continues, hybrid, registered

VOCABULARY = 1000


def noise(seed: int, length: int) -> list[int]:
    """Text that no index can foresee."""
    return random.Random(seed).choices(range(VOCABULARY), k=length)


def decode(client: LocalClient, texts: Sequence[Sequence[int]], *, prompt: int = 4, **asked: Any) -> tuple[int, int]:
    """Verifies every draft whole, all texts in one batch; steps taken and nodes drafted."""
    requests = [client.open(f"r{number}", text[:prompt]) for number, text in enumerate(texts)]
    fresh: dict[Request, Sequence[int]] = dict.fromkeys(requests, ())
    done = dict.fromkeys(requests, prompt)
    of = dict(zip(requests, texts, strict=True))
    steps = nodes = 0
    while fresh:
        drafts = client.step(fresh, **asked)
        fresh = {}
        for request, draft in drafts.items():
            whole, position = of[request], done[request]
            if position == len(whole):
                continue
            emitted = verify(draft.tokens, draft.parents, whole, position).emitted
            fresh[request] = whole[position : position + emitted]
            done[request] += emitted
            steps += 1
            nodes += len(draft.tokens)
    for request in requests:
        request.close()
    return steps, nodes


def test_what_a_source_knows_is_drafted_and_accepted() -> None:
    texts = [noise(seed, 200) for seed in range(4)]
    with hybrid(NOTHING) as (_, client):
        alone, _ = decode(client, texts)
    with hybrid(continues(texts)) as (_, client):
        together, _ = decode(client, texts)
    assert alone > 4 * 190
    assert together < alone / 8


def test_its_nodes_say_that_they_are_a_sources() -> None:
    text = noise(1, 100)
    with hybrid(continues([text])) as (_, client):
        request = client.open("r", text[:10])
        draft = client.step({request: ()}, max_nodes=8)[request]
    assert Source.DRAFT_SOURCE in draft.source
    path = verify(draft.tokens, draft.parents, text, 10).path
    assert len(path) > 1
    assert all(draft.source[node] == Source.DRAFT_SOURCE for node in path)


def junk(text: list[int], nodes: int) -> list[int]:
    return [(text[-1] + 17 * place) % VOCABULARY for place in range(nodes)]


def test_a_source_that_is_never_right_soon_takes_no_nodes_and_is_hardly_asked() -> None:
    """Text that the indexes foresee in part."""
    unit = noise(3, 40)
    texts = [[token if random.Random(i).random() < 0.8 else i % VOCABULARY for i, token in enumerate(unit * 80)]]
    with hybrid(NOTHING) as (_, client):
        alone, _ = decode(client, texts, prompt=80, max_nodes=8)
    with hybrid(junk) as (_, client):
        together, _ = decode(client, texts, prompt=80, max_nodes=8)
        (source,) = Scripted.made
        assert len(source.asked) < together / 3
    assert together <= 1.03 * alone


def test_a_source_that_pays_is_asked_every_time() -> None:
    """What it brings is known without leaving it out."""
    text = noise(18, 600)
    with hybrid(continues([text])) as (_, client):
        steps, _ = decode(client, [text], max_nodes=4)
        (source,) = Scripted.made
    assert len(source.asked) == steps + 1  # once more at the end of the text


def test_a_source_that_knows_no_more_than_the_indexes_is_soon_hardly_asked() -> None:
    text = noise(19, 20) * 60
    with hybrid(continues([text]), least_gain=0.1) as (_, client):
        steps, _ = decode(client, [text], prompt=50, max_nodes=8)
        (source,) = Scripted.made
    assert len(source.asked) < steps / 3


def test_a_source_that_says_nothing_is_soon_hardly_asked() -> None:
    with hybrid(NOTHING) as (_, client):
        steps, _ = decode(client, [noise(16, 1500)])
        (source,) = Scripted.made
    assert len(source.asked) < steps / 4


def test_a_step_that_only_asks_again_says_nothing_of_the_draft_before() -> None:
    text = noise(17, 60)
    with hybrid(continues([text])) as (_, client):
        request = client.open("r", text[:10])
        for _ in range(3):
            client.step({request: ()}, max_nodes=6)
        (source,) = Scripted.made
        assert source.fates == []


def test_a_request_that_the_indexes_foresee_is_left_alone_when_asking_brings_nothing() -> None:
    known, unknown = noise(4, 30) * 40, noise(5, 1000)
    with hybrid(continues([known, unknown])) as (_, client):
        decode(client, [known, unknown], prompt=90, max_nodes=8)
        (source,) = Scripted.made
    numbers = [number for call in source.asked[40:] for number in call]
    assert numbers.count(1) < numbers.count(2) / 3


@pytest.mark.parametrize("script", [NOTHING, junk])
def test_a_source_is_shown_every_text_as_it_is(script: Script) -> None:
    """Also where a verifier takes tokens back, opens a request anew, and where a call failed in between."""
    chance = random.Random(6)

    def failing(text: list[int], nodes: int) -> list[int]:
        seen.append(list(text))
        if chance.random() < 0.2:
            raise RuntimeError("out of order")
        return script(text, nodes)

    seen: list[list[int]] = []
    with hybrid(failing, least_gain=0.0) as (_, client):
        text = noise(7, 30)
        request = client.open("r", text)
        for _ in range(60):
            fresh = noise(chance.randrange(1000), 3)
            if chance.random() < 0.2:
                request = client.open("r", text)  # the same once more, another epoch
                fresh = []
            client.step({request: fresh}, max_nodes=4)
            text += fresh
            assert not seen or seen[-1] == text
            seen.clear()


def test_of_what_became_of_its_nodes_it_is_told() -> None:
    text = noise(8, 60)
    with hybrid(continues([text])) as (_, client):
        request = client.open("r", text[:10])
        draft = client.step({request: ()}, max_nodes=6)[request]
        path = verify(draft.tokens, draft.parents, text, 10).path
        client.step({request: [*text[10 : 10 + len(path) - 1], VOCABULARY - 1]}, max_nodes=6)
        (source,) = Scripted.made
        assert source.fates == [(len(path), len(path) - 1)]


def test_of_every_request_that_it_was_shown_it_is_told_the_end() -> None:
    clock = [0.0]
    with registered(junk):
        engine = Engine(
            EngineSettings(session_ttl=100.0), sources=[SourceSettings(name="scripted")], clock=lambda: clock[0]
        )
    with LocalClient(engine) as client:
        closed, silent, anew = (client.open(name, noise(9, 20)) for name in ("closed", "silent", "anew"))
        client.step({closed: (), silent: (), anew: ()})
        (source,) = Scripted.made
        assert sorted(source.texts) == [1, 2, 3]
        closed.close()
        anew = client.open("anew", noise(9, 20))
        client.step({anew: ()})
        assert sorted(source.ended) == [1, 3]
        clock[0] = 101.0
        engine.expire()
        assert sorted(source.ended) == [1, 2, 3, 4]
    engine.close()
    assert source.closed


def test_limits_hold_for_a_sources_nodes() -> None:
    text = noise(10, 100)
    with hybrid(continues([text])) as (_, client):
        stops = client.open("stops", text[:10], stop_ids=[text[12]])
        chain = client.open("chain", text[:10], shape="chain")
        ends = client.open("ends", text[:10], max_new_tokens=3)
        longest = 0
        for _ in range(3):
            drafts = client.step(dict.fromkeys((stops, chain, ends), ()), budget=20, max_nodes=8)
            assert sum(len(draft.tokens) for draft in drafts.values()) <= 20
            assert len(drafts[ends].tokens) <= 2
            longest = max(longest, len(drafts[chain].tokens))
            assert list(drafts[chain].parents) == list(range(-1, len(drafts[chain].tokens) - 1))
            below = [parent for parent in drafts[stops].parents if parent >= 0]
            assert all(drafts[stops].tokens[parent] != text[12] for parent in below)
        assert longest > 1


def test_ids_outside_the_vocabulary_are_left_out_with_what_is_below_them() -> None:
    def too_large(text: list[int], nodes: int) -> list[int]:
        return [text[0], VOCABULARY, text[1]][:nodes]

    text = noise(15, 10)
    with hybrid(too_large) as (engine, _), LocalClient(engine, vocabulary_size=VOCABULARY) as client:
        request = client.open("r", text)
        draft = client.step({request: ()}, max_nodes=8)[request]
    assert text[0] in draft.tokens
    assert max(draft.tokens) < VOCABULARY


def test_a_source_that_can_not_be_made_is_refused_when_the_engine_starts() -> None:
    with registered(NOTHING), pytest.raises(SourceError, match="'scripted' does not start: refuses work"):
        Engine(EngineSettings(), sources=[SourceSettings(name="scripted", options={"refuses": "work"})])
    with pytest.raises(SourceError, match="there is no draft source 'nothing'"):
        Engine(EngineSettings(), sources=[SourceSettings(name="nothing")])


def test_a_source_that_would_never_be_asked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "nature", replace(Scripted.nature, call_micros=600.0))
    refused = pytest.raises(SourceError, match=r"a call takes 0\.6 ms, and sources\.milliseconds is 0\.5")
    with registered(NOTHING), refused:
        Engine(EngineSettings(), sources=[SourceSettings(name="scripted", milliseconds=0.5)])


def test_each_namespace_has_an_instance_of_its_own_and_others_have_none() -> None:
    text = noise(11, 50)
    with hybrid(continues([text]), model="ours") as (engine, _):
        clients = [LocalClient(engine, Namespace(tenant, model)) for tenant, model in [("a", "ours"), ("b", "theirs")]]
        for client in clients:
            client.step({client.open("r", text[:20]): ()})
        assert [len(source.texts) for source in Scripted.made] == [1]


def test_another_namespaces_instance_is_made_beside_the_steps() -> None:
    text = noise(12, 50)
    with hybrid(continues([text])) as (engine, client):
        client.step({client.open("r", text[:20]): ()})
        with LocalClient(engine, Namespace("another")) as other:
            request = other.open("r", text[:20])
            for _ in range(100_000):
                draft = other.step({request: ()})[request]
                if Source.DRAFT_SOURCE in draft.source:
                    break
            else:
                pytest.fail("the instance never came")
        assert [len(source.texts) for source in Scripted.made] == [1, 1]


def test_two_engines_of_a_namespace_draft_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them at a time asks; a call of the other's is no failure of the source."""
    monkeypatch.setattr(Scripted, "nature", replace(Scripted.nature, lane=Lane.THREAD))

    def left_alone() -> float | None:
        return REGISTRY.get_sample_value("draftd_source_calls_total", {"source": "scripted", "outcome": "off"})

    before, texts = left_alone(), [noise(seed, 400) for seed in (20, 21)]
    steps: list[int] = []
    with hybrid(continues(texts)) as (engine, client):

        def decode_one(text: list[int]) -> None:
            with LocalClient(engine) as mine:
                steps.append(decode(mine, [text])[0])

        threads = [threading.Thread(target=decode_one, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert len(steps) == 2  # both came to their end
        (source,) = Scripted.made
        decode(client, [texts[0]])  # what was told meanwhile may have waited
        until(lambda: set(source.texts) <= set(source.ended))
        assert left_alone() == before


def test_a_source_that_fails_leaves_the_drafts_of_the_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_self: Scripted, batch: Batch, budget: np.ndarray) -> Proposals:
        raise RuntimeError("no more")

    texts = [noise(13, 30) * 5]
    with hybrid(NOTHING) as (_, client):
        alone = decode(client, texts, prompt=40)
    monkeypatch.setattr(Scripted, "propose", fails)
    with hybrid(NOTHING) as (engine, client):
        assert decode(client, texts, prompt=40) == alone
        figures = engine.statistics()
    assert figures.delivered_tails > 0


def test_a_draft_that_was_improved_counts_once() -> None:
    text = noise(14, 60)
    with hybrid(continues([text])) as (engine, client):
        steps, nodes = decode(client, [text], max_nodes=8)
        figures = engine.statistics()
    assert sum(figures.drafted_per_position) == nodes
    assert figures.delivered_tails + sum(figures.empty_tails.values()) == steps + 1
