"""An engine whose requests are drafted from a scripted source, too, and what the source was asked and told."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from draftd.client.local import LocalClient
from draftd.config import EngineSettings, SourceSettings
from draftd.engine import Engine
from draftd.sources import REGISTRY, Batch, Lane, Nature, Need, Outcome, Proposals, Shape
from draftd.sources.source import begins

Script = Callable[[list[int], int], list[int]]
NOTHING: Script = lambda text, nodes: []  # noqa: E731


class Scripted:
    """Chains as `script` has them, from the text as it was shown; keeps a record, which all instances share."""

    nature = Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.CHAIN,
        states_survival=False,
        lane=Lane.NATIVE,
        call_micros=0.0,
        row_micros=0.0,
    )
    script: ClassVar[Script] = NOTHING
    made: ClassVar[list["Scripted"]] = []

    def __init__(self, **options: object) -> None:
        if "refuses" in options:
            raise ValueError(f"refuses {options['refuses']}")
        self.texts: dict[int, list[int]] = {}
        self.asked: list[list[int]] = []  # requests, by call
        self.batches: list[Batch] = []
        self.outcomes: list[Outcome] = []
        self.closed = False
        Scripted.made.append(self)

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        rows = zip(
            batch.request.tolist(),
            batch.start.tolist(),
            begins(batch.token_end).tolist(),
            batch.token_end.tolist(),
            budget.tolist(),
            strict=True,
        )
        self.asked.append(batch.request.tolist())
        self.batches.append(batch)
        chains = []
        for request, start, first, end, nodes in rows:
            text = self.texts.setdefault(request, [])
            assert start <= len(text)
            text[start:] = batch.tokens[first:end].tolist()
            chains.append(Scripted.script(text, nodes)[:nodes])
        ends = np.cumsum([len(chain) for chain in chains], dtype=np.uint32)
        return Proposals(ends, np.array([token for chain in chains for token in chain], np.int32))

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def close(self) -> None:
        self.closed = True

    def memory(self) -> int:
        return 0

    @property
    def ended(self) -> list[int]:
        return [number for outcome in self.outcomes for number in outcome.ended.tolist()]

    @property
    def fates(self) -> list[tuple[int, int]]:
        """Of each outcome that it was told the verified and the accepted nodes."""
        return [
            fate
            for outcome in self.outcomes
            for fate in zip(outcome.verified.tolist(), outcome.accepted.tolist(), strict=True)
        ]


class ReadsStates(Scripted):
    """Keeps the hidden states that it was shown, by request and position."""

    nature = replace(Scripted.nature, needs=frozenset({Need.TOKENS, Need.HIDDEN_STATES}))

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.states: dict[int, dict[int, list[float]]] = {}

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        hidden = batch.hidden
        assert hidden is not None
        spans = zip(hidden.start.tolist(), begins(hidden.end).tolist(), hidden.end.tolist(), strict=True)
        for request, (start, first, end) in zip(batch.request.tolist(), spans, strict=True):
            values = hidden.values[first:end].astype(float).tolist()
            self.states.setdefault(request, {}).update(enumerate(values, start))
        return super().propose(batch, budget)


@contextmanager
def registered(script: Script, kind: type[Scripted] = Scripted) -> Iterator[None]:
    """It is known as "scripted", with a clean record; other tests run for all sources that are known."""
    Scripted.script, Scripted.made = script, []
    classes: dict[str, type] = REGISTRY._classes
    with patch.dict(classes, scripted=kind):
        yield


@contextmanager
def hybrid(script: Script, kind: type[Scripted] = Scripted, **settings: object) -> Iterator[tuple[Engine, LocalClient]]:
    """`settings`: of the source. A clean record, too."""
    chosen = SourceSettings.model_validate({"name": "scripted", "milliseconds": 5000, **settings})
    with registered(script, kind):
        engine = Engine(EngineSettings(), sources=[chosen])
        try:
            with LocalClient(engine) as client:
                yield engine, client
        finally:
            engine.close()


def continues(texts: Sequence[Sequence[int]]) -> Script:
    """It knows these texts, and drafts how the one goes on that begins as what it is shown."""

    def script(text: list[int], nodes: int) -> list[int]:
        for whole in texts:
            if list(whole[: len(text)]) == text:
                return list(whole[len(text) : len(text) + nodes])
        return []

    return script
