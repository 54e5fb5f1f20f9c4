"""The native engine answers what its slow twin answers, bit for bit, whatever verifiers do."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from draftd import native
from draftd.reference import engine as reference
from draftd.reference.events import Status
from draftd.reference.policy import NO_LIMIT
from tests.property.models import assert_equal, native_model, random_model
from tests.property.rows import Drafted, packed, step
from tests.property.verifiers import (
    Mirror,
    Plan,
    costs,
    drafted,
    handles,
    namespaces,
    native_cost,
    options,
    paces,
    plans,
    prompts,
    tokens,
    verifiers,
)
from tests.segments import sealed

AMPLE = 1 << 30
SESSION_TTL = 100.0

Key = tuple[int, int]


def windows_of(tapes: native.Tapes) -> list[list[tuple[list[int], int]]]:
    """Of each row, its windows with the corpora that they are from."""
    ends, window_ends = np.frombuffer(tapes.token_end, "<u4"), np.frombuffer(tapes.window_end, "<u4")
    windows = [window.tolist() for window in np.split(np.frombuffer(tapes.tokens, "<i4"), ends)[:-1]]
    told = list(zip(windows, np.frombuffer(tapes.corpus, "<u4").tolist(), strict=True))
    return [told[first:end] for first, end in zip([0, *window_ends[:-1]], window_ends, strict=True)]


class EnginesAgree(RuleBasedStateMachine):
    """Does the same with both engines and compares what they say."""

    @initialize(
        max_nodes=st.sampled_from([64, 5]),
        prompts=st.lists(prompts(), min_size=4, max_size=4),
        options=st.lists(options(), min_size=4, max_size=4),
        documents=st.lists(prompts(), max_size=3),
        learning=st.sampled_from([True, True, True, False]),
        priors=st.none() | st.integers(0, 2**32 - 1),
        pace=paces,
    )
    def start(
        self,
        max_nodes: int,
        prompts: list[list[int]],
        options: list[dict[str, Any]],
        documents: list[list[int]],
        learning: bool,
        priors: int | None,
        pace: dict[str, Any],
    ) -> None:
        limits = (SESSION_TTL, AMPLE, AMPLE, max_nodes)
        said = {"indexing_thread": False, "learning": learning} | pace
        model = random_model(priors) if priors is not None else None
        self.native = native.Engine(*limits, **said, priors=native_model(model).save() if model else b"")
        self.twin = reference.Engine(*limits, **said, priors=model)
        self.mirrors: dict[Key, Mirror] = {}
        self.now = 0.0
        for namespace in range(2):
            assert self.native.create_namespace() == self.twin.create_namespace() == namespace
        self.publish(0, 1, documents)
        keys = [(verifier, handle) for verifier in (1, 2**64 - 1) for handle in (0, 1)]
        for (verifier, handle), prompt, said in zip(keys, prompts, options, strict=True):
            self.open(verifier, handle, 1, 0, prompt, [], said)

    @rule(
        verifier=verifiers,
        handle=handles,
        epochs=st.sampled_from([1, 1, 0, -1, 3]),
        namespace=namespaces,
        prompt=prompts(),
        output=tokens,
        options=options(),
    )
    def open(
        self,
        verifier: int,
        handle: int,
        epochs: int,
        namespace: int,
        prompt: list[int],
        output: list[int],
        options: dict[str, Any],
    ) -> None:
        mirror = self.mirrors.setdefault((verifier, handle), Mirror())
        epoch = max(mirror.epoch + epochs, 0)
        said = {"verifier": verifier, "request": handle, "epoch": epoch, "namespace": namespace}
        self._open(options | said, prompt, output)

    @rule(
        earlier=st.tuples(verifiers, handles),
        closes=st.booleans(),
        handle=handles,
        namespace=namespaces,
        less=st.sampled_from([0, 0, 0, 1, 3]),
        more=prompts(),
        output=tokens,
        options=options(),
    )
    def go_on(
        self,
        earlier: Key,
        closes: bool,
        handle: int,
        namespace: int,
        less: int,
        more: list[int],
        output: list[int],
        options: dict[str, Any],
    ) -> None:
        """The next turn: a prompt that begins with the text of an earlier request, or nearly."""
        if closes:
            self.close(*earlier, 0)
        text = self.mirrors[earlier].text
        self.open(earlier[0], handle, 1, namespace, text[: len(text) - less] + more, output, options)

    def _open(self, opening: dict[str, Any], prompt: list[int], output: list[int]) -> None:
        opening |= {"prompt": packed("<i4", prompt), "output": packed("<i4", output), "now": self.now}
        policy: dict[str, Any] = opening["policy"]
        status, detail = self.native.open(**opening | {"policy": native.DraftPolicy(**policy)})
        assert (status, detail) == self.twin.open(**opening | {"policy": reference.Policy(**policy)})
        if status == Status.OK:
            key = (opening["verifier"], opening["request"])
            self.mirrors[key] = Mirror(opening, opening["epoch"], prompt + output)

    @rule(
        verifier=verifiers,
        steps=st.lists(plans("append", "follow", "follow", "step ahead"), min_size=3, max_size=8),
        budget=st.sampled_from([0, 0, 1, 6]),
        min_survival=st.sampled_from([0.0, 0.0, 0.05, 0.3]),
        cost=costs(),
        most_nodes=st.sampled_from([None, 0, 2, 5, NO_LIMIT]),
        drafted=st.none() | drafted(),
    )
    def decode(
        self,
        verifier: int,
        steps: list[list[Plan]],
        budget: int = 0,
        min_survival: float = 0.0,
        cost: reference.StepCost | None = None,
        most_nodes: int | None = None,
        drafted: list[Drafted] | None = None,
    ) -> None:
        asked = {"budget": budget, "min_survival": min_survival, "most_nodes": most_nodes}
        for of_requests in steps:
            self._step(verifier, of_requests, cost, **asked, drafted=drafted and drafted[: len(of_requests)])

    @rule(
        verifier=verifiers,
        steps=st.lists(
            plans("follow", "repeat", "extend", "change", "gap", "old epoch", "new epoch", "bad id"),
            min_size=1,
            max_size=4,
        ),
    )
    def decode_badly(self, verifier: int, steps: list[list[Plan]]) -> None:
        self.decode(verifier, steps)

    def _step(self, verifier: int, plans: list[Plan], cost: reference.StepCost | None, **asked: Any) -> None:
        mirrors = [self.mirrors[verifier, plan.handle] for plan in plans]
        rows = [mirror.commit(plan) for mirror, plan in zip(mirrors, plans, strict=True)]
        said = {"now": self.now, **asked}
        told = native_cost(cost) if cost else None
        tails = step(self.native, native.StepColumns, verifier, rows, cost=told, **said)
        assert tails == step(self.twin, reference.StepColumns, verifier, rows, cost=cost, **said)
        for tail in tails:
            assert all(-1 <= parent < node for node, parent in enumerate(tail.parents))
        for plan, mirror, row, tail in zip(plans, mirrors, rows, tails, strict=True):
            if tail.status == Status.OK:
                mirror.taken(row, tail)
            elif tail.status == Status.NEED_SYNC and plan.how == "follow" and mirror.opening:
                self._open(mirror.opening | {"epoch": mirror.epoch + 1}, mirror.text, [])

    @rule(verifier=verifiers, starts=st.tuples(st.integers(0, 9), st.integers(0, 9)))
    def read_texts(self, verifier: int, starts: tuple[int, int]) -> None:
        epochs = [self.mirrors[verifier, handle].epoch for handle in (0, 1)]
        asked = (verifier, packed("<u4", [0, 1]), packed("<u4", epochs), packed("<u4", starts))
        assert self.native.texts(*asked) == self.twin.texts(*asked)

    @rule(verifier=verifiers, windows=st.sampled_from([0, 1, 2, 4]))
    def look_for_windows(self, verifier: int, windows: int) -> None:
        epochs = [self.mirrors[verifier, handle].epoch for handle in (0, 1)]
        asked = (verifier, packed("<u4", [0, 1]), packed("<u4", epochs), windows, 0)
        assert windows_of(self.native.tapes(*asked)) == self.twin.tapes(*asked)

    @rule(verifier=verifiers, handle=handles, epochs=st.sampled_from([-1, 1]))
    def close(self, verifier: int, handle: int, epochs: int) -> None:
        epoch = max(self.mirrors[verifier, handle].epoch + epochs, 0)
        closing = (verifier, packed("<u4", [handle]), packed("<u4", [epoch]), self.now, 1000 + int(self.now))
        assert self.native.close(*closing) == self.twin.close(*closing)

    @rule(
        verifier=verifiers,
        steps=st.lists(plans("append", "follow", "follow", "step ahead"), min_size=3, max_size=8),
        most=st.sampled_from([AMPLE, AMPLE, 40]),
        namespace=namespaces,
        prompts=st.lists(prompts(), min_size=2, max_size=2),
        options=options(),
    )
    def finish_and_begin_anew(
        self,
        verifier: int,
        steps: list[list[Plan]],
        most: int,
        namespace: int,
        prompts: list[list[int]],
        options: dict[str, Any],
    ) -> None:
        self.decode(verifier, steps)
        for handle in (0, 1):
            self.close(verifier, handle, 0)
        self.index(most)
        for handle in (0, 1):
            self.open(verifier, handle, 1, namespace, prompts[handle], [], options)

    @rule(most=st.sampled_from([1, 40, AMPLE]))
    def index(self, most: int) -> None:
        assert self.native.index_slice(most) == self.twin.index_slice(most)

    @rule(namespace=namespaces, number=st.integers(1, 3), documents=st.lists(prompts(), max_size=3))
    def publish(self, namespace: int, number: int, documents: list[list[int]]) -> None:
        segments = [part for part in (documents[:2], documents[2:]) if any(part)]
        self.native.publish_corpus(namespace, number, [sealed(part) for part in segments])
        self.twin.publish_corpus(namespace, number, [reference.Segment(part) for part in segments])

    @rule(namespace=namespaces, number=st.integers(1, 3))
    def withdraw(self, namespace: int, number: int) -> None:
        self.native.withdraw_corpus(namespace, number)
        self.twin.withdraw_corpus(namespace, number)

    @rule(seconds=st.sampled_from([1.0, 1.0, 40.0, SESSION_TTL + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        assert self.native.expire(self.now) == self.twin.expire(self.now)

    @invariant()
    def figures_agree(self) -> None:
        assert figures(self.native) == figures(self.twin)

    @invariant()
    def lessons_agree(self) -> None:
        assert self.native.lessons() == self.twin.lessons()

    def teardown(self) -> None:
        for namespace, _ in self.twin.lessons():
            learned = self.twin.learned(namespace)
            assert learned is not None
            assert_equal(native.Model.load(self.native.learned(namespace)), learned)


def figures(engine: Any) -> dict[str, Any]:
    """The statistics without sizes in bytes, which the twin does not model."""
    counted: dict[str, Any] = engine.statistics()
    counted.pop("learned_bytes", None)
    return counted | {"index": {kind: size["tokens"] for kind, size in counted["index"].items()}}


EnginesAgree.TestCase.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=40)
TestEnginesAgree = EnginesAgree.TestCase
