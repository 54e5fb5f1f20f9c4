"""The requests of an engine that knows what is new: what it states each step becomes one message."""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from draftd.adapters.sendable import sendable
from draftd.adapters.step_clock import StepClock
from draftd.client import Draft, Reason, Request
from draftd.client.client import ChannelClient
from draftd.client.draft import Tails
from draftd.client.opening import OpenOptions
from draftd.client.pacing import StepOptions
from draftd.wire import Status


class EngineRow(NamedTuple):
    """One request in one step of an engine."""

    request_id: str
    text: NDArray[np.int32]  # int32[n]: everything committed, prompt and output
    prompt_length: int  # tokens
    max_nodes: int  # of the draft wanted; 0: none
    verified: int | None = None  # how many nodes of the last draft, in order, went through the target; None: all
    options: OpenOptions | None = None  # looked at when the id is not open yet; kept for opening it again


@dataclass(slots=True)
class Figures:
    """What became of the drafts so far, in tokens."""

    steps: int = 0  # rows that were stated: one request in one step is one
    drafted: int = 0
    verified: int = 0  # of those drafted
    accepted: int = 0  # of those verified


@dataclass(slots=True)
class _Known:
    """A request that draftd was told of."""

    request: Request
    prompt_length: int
    options: OpenOptions
    figures: Figures
    given: int = 0  # nodes of the last draft
    drafted: int = 0  # of them, those that the engine got


class EngineRequests:
    """Engine requests by id, each a request of `client`. Belongs to one thread.

    Nothing raises for what a drafter or a network does, as little as the client's verbs do, nor for what a user of the
    engine asked for: a request that can't be opened is decoded without drafts, and counted in the client's health.
    """

    def __init__(self, client: ChannelClient) -> None:
        self.client = client
        self.step_clock = StepClock()
        self.figures_of: dict[str, Figures] = {}  # by adapter (LoRA); "" is the model without
        self._known: dict[str, _Known] = {}
        self._refused: set[str] = set()  # ids of requests that can't be opened

    @property
    def figures(self) -> Figures:
        """Of all adapters together."""
        counted = list(self.figures_of.values())  # at once: who looks may be another thread
        return Figures(*map(sum, zip(*map(astuple, counted), strict=True)))

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._known or request_id in self._refused

    def __repr__(self) -> str:
        return f"EngineRequests({len(self._known)} open, {self.figures})"

    def keep(self, request_ids: Collection[str]) -> None:
        """Closes the requests that are not among these; the next message says so."""
        self.drop((self._known.keys() - request_ids) | self._refused.difference(request_ids))

    def drop(self, request_ids: Collection[str]) -> None:
        """Closes these, as far as they are open; the next message says so."""
        self._refused.difference_update(request_ids)
        for request_id in self._known.keys() & request_ids:
            self.client.close_request(self._known.pop(request_id).request, hold=True)

    def step(self, rows: Sequence[EngineRow], other_tokens: int = 0) -> list[Draft]:
        """Commits what is new in each row's text, and drafts: one message, one draft for each row, none longer than its
        max_nodes.

        An id that is not open is opened. A text that does not go on from the one known (shorter, or with a
        prompt of another length) opens its request again. Of several rows of one id the first counts; the others get
        empty drafts, as do requests that can't be opened.

        `other_tokens`: so many are expected to go through the target beside those of the rows, when the drafts do.
        """
        stated, commits, verified, load = self._take(rows)
        wanted = {known.request: row.max_nodes for row, known in zip(rows, stated, strict=True) if known is not None}
        if other_tokens := other_tokens + stated.count(None):  # rows without a draft have a token each
            load["other_tokens"] = other_tokens
        answer = self.client.step(commits, max_nodes=wanted, verified=verified, **load)
        drafts: list[Draft] = []
        for row, known in zip(rows, stated, strict=True):
            if known is None:
                drafts.append(_no_draft(row))
                continue
            draft = answer[known.request]
            known.given = known.drafted = len(draft)
            if known.given > row.max_nodes:
                draft = draft.first(row.max_nodes)
                known.drafted = row.max_nodes
            known.figures.drafted += known.drafted
            known.figures.steps += 1
            drafts.append(draft)
        self.step_clock.begin({row.request_id for row in rows})
        return drafts

    def finish(self, row: EngineRow) -> None:
        """Commits what is new in the row's text and closes the request, at once: for engines that tell of the end."""
        (known,), commits, verified, _ = self._take([row])
        if known is None:
            self._refused.discard(row.request_id)
            return
        self.client.commit(commits, verified=verified)
        del self._known[row.request_id]
        self.client.close_request(known.request)

    def _take(
        self, rows: Sequence[EngineRow]
    ) -> tuple[list[_Known | None], dict[Request, list[int]], dict[Request, int], StepOptions]:
        """What is known of each row's request, its new tokens, of how much of a draft they are the outcome, and how
        long that took."""
        advanced: set[str] = set()
        width = 0  # tokens that went through the target
        stated: list[_Known | None] = []
        commits: dict[Request, list[int]] = {}
        verified: dict[Request, int] = {}
        for row in rows:
            known = self._stated(row, commits)
            stated.append(known)
            if known is None:  # all that is known of it: one token, and nothing of a draft
                advanced.add(row.request_id)
                width += 1
                continue
            new = commits[known.request] = row.text[known.request.length :].tolist()
            if new:
                advanced.add(row.request_id)
                width += 1
            if known.drafted and new:
                went_through = known.drafted if row.verified is None else min(row.verified, known.drafted)
                if went_through < known.given:  # all of it is what the drafter takes for granted
                    verified[known.request] = went_through
                width += went_through
                known.figures.verified += went_through
                known.figures.accepted += min(went_through, len(new) - 1)  # what each forward pass yields is no draft
        seconds = self.step_clock.seconds(advanced)
        measured: StepOptions = {} if seconds is None else {"step_seconds": seconds, "step_width": width}
        return stated, commits, verified, measured

    def _stated(self, row: EngineRow, commits: Collection[Request]) -> _Known | None:
        """None: another row of that id came first, or the request can't be opened."""
        known = self._known.get(row.request_id)
        if known is None:
            return self._open(row, row.options or {})
        if known.request in commits:
            return None
        if known.prompt_length != row.prompt_length or known.request.length > len(row.text):
            return self._open(row, known.options)
        return known

    def _open(self, row: EngineRow, options: OpenOptions) -> _Known | None:
        """None: what it states can't be meant. It is not tried again until the request is over."""
        if row.request_id in self._refused:
            return None
        try:
            request = self.client.open(sendable(row.request_id), row.text[: row.prompt_length], hold=True, **options)
        except (TypeError, ValueError) as error:
            self._refused.add(row.request_id)
            self.client.count_refused(str(error))
            return None
        figures = self.figures_of.setdefault(options.get("adapter", ""), Figures())
        known = self._known[row.request_id] = _Known(request, row.prompt_length, options, figures)
        return known


def _no_draft(row: EngineRow) -> Draft:
    return Tails.empty(Reason.REFUSED, [0], [len(row.text)], Status.INVALID_ARGUMENT).drafts()[0]
