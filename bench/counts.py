"""What survival would be if counts were taken at their word: what the calibration of draftd is compared with.

A node's probability is then count / total in the longest context that knows it, of the request's own text and of what
was shared, and its survival the product along its path. It is asked for the very nodes that draftd drafted, so that
nothing differs but the survival.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bench.replays import Replay, engine_for
from draftd.native import Index
from draftd.replay import ReplayResult
from draftd.replay.calibration import Calibration
from draftd.replay.client_drafter import ClientDrafter, ClientRequest
from draftd.replay.runner import PlainDraft, TimedDrafts
from draftd.replay.runner import replay as replay_requests
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.replay.verification import ROOT, verify

EVERY = 32  # steps of a request, one is compared: matching in Python takes much longer than drafting
LONGEST = 64  # tokens of a context
MOST_FOLLOWERS = 64  # of a context, as in the drafter


class CountedRequest:
    """A request under way, whose text is also indexed here."""

    def __init__(self, drafter: "CountingDrafter", request: ClientRequest, prompt: list[int]) -> None:
        self._drafter = drafter
        self.request = request
        self._text = list(prompt)
        self._prompt_length = len(prompt)
        self._index = Index()
        self._index.append(prompt)
        self._steps = 0
        self._compared: PlainDraft | None = None

    def finish(self, tokens: Sequence[int]) -> None:
        self._append(tokens)
        self.request.finish(tokens)
        self._drafter.shared.append(self._text[self._prompt_length :])
        self._drafter.shared.end_document()

    def commit(self, tokens: Sequence[int]) -> None:
        self._append(tokens)

    def drafted(self, draft: PlainDraft) -> None:
        """Compares the draft as soon as it is known what became of it."""
        self._steps += 1
        if self._steps % EVERY == 0 and len(draft.tokens):
            self._compared = draft

    def _append(self, tokens: Sequence[int]) -> None:
        if self._compared is not None and tokens:
            draft, self._compared = self._compared, None
            assert draft.survival is not None
            path = verify(draft.tokens, draft.parents, list(tokens), 0).path
            self._drafter.stated.add(draft.survival, path)
            self._drafter.counted.add(self._counted_survival(draft), path)
        self._index.append(list(tokens))
        self._text.extend(tokens)

    def _counted_survival(self, draft: PlainDraft) -> NDArray[np.float32]:
        survival = np.empty(len(draft.tokens), np.float32)
        contexts: list[list[int]] = []  # of each node, itself included
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            context = self._text[-LONGEST:] if parent == ROOT else contexts[parent]
            above = 1.0 if parent == ROOT else survival[parent]
            survival[node] = above * self._share(context, token)
            contexts.append([*context[-LONGEST + 1 :], token])
        return survival

    def _share(self, context: list[int], token: int) -> float:
        shared = self._drafter.shared
        levels = [level for index in (self._index, shared) for level in index.match(context)]
        for level in sorted(levels, key=lambda level: -level.length):
            if level.length and level.distinct <= MOST_FOLLOWERS:
                for known, count, _ in level.continuations:
                    if known == token:
                        return count / level.total
        return dict(shared.frequent_tokens()).get(token, 0) / max(shared.tokens, 1)


class CountingDrafter:
    """Drafts with draftd, and keeps both survivals of the compared nodes."""

    def __init__(self, drafter: ClientDrafter) -> None:
        self._drafter = drafter
        self.shared = Index()
        self.stated = Calibration()  # draftd's
        self.counted = Calibration()  # count / total

    def open(self, recorded: RecordedRequest) -> CountedRequest:
        return CountedRequest(self, self._drafter.open(recorded), recorded.prompt.tolist())

    def step(self, commits: Mapping[CountedRequest, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        for row, tokens in commits.items():
            row.commit(tokens)
        answer = self._drafter.step({row.request: tokens for row, tokens in commits.items()}, nodes, min_survival)
        for row, draft in zip(commits, answer.drafts, strict=True):
            row.drafted(draft)
        return answer


def compare_with_counts(replay: Replay) -> tuple[Calibration, Calibration]:
    """The calibration of draftd's survival and that of count / total, over the same nodes."""
    with engine_for(replay) as client:
        drafter = CountingDrafter(ClientDrafter(client))
        requests = islice(read_trace(replay.trace), replay.options.requests)
        replay_requests(requests, drafter, replay.options.step_budget(), ReplayResult(replay.workload))
    return drafter.stated, drafter.counted
