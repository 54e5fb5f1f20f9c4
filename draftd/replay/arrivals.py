"""Which recorded requests may be under way together."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from draftd.replay.traces import RecordedRequest, TokenArray


class Arrivals:
    """Hands out recorded requests in file order, but never two of one session at once.

    A group of requests is a session as soon as one of them goes on where the one before it ended: its prompt starts
    with that prompt and output. A later turn holds the answers of the earlier ones, so it has to wait for them, and
    whatever comes after it in the file goes first. Groups that are samples of one prompt run side by side.
    """

    def __init__(self, requests: Iterable[RecordedRequest]) -> None:
        self._unread = iter(requests)
        self._waiting: list[RecordedRequest] = []  # read, but not to be started yet; in file order
        self._under_way: Counter[str] = Counter()  # requests of each group
        self._sessions: set[str] = set()  # groups
        self._last_of: dict[str, RecordedRequest] = {}  # by group

    def start_next(self) -> RecordedRequest | None:
        """The first request that may start now; None if there is none until another has ended."""
        for place, request in enumerate(self._waiting):
            if self._may_start(request):
                del self._waiting[place]
                return self._started(request)
        for request in self._unread:
            self._recognise_session(request)
            if self._may_start(request):
                return self._started(request)
            self._waiting.append(request)
        return None

    def ended(self, request: RecordedRequest) -> None:
        """It is not under way any more."""
        self._under_way[request.group] -= 1

    def _may_start(self, request: RecordedRequest) -> bool:
        return request.group not in self._sessions or not self._under_way[request.group]

    def _started(self, request: RecordedRequest) -> RecordedRequest:
        self._under_way[request.group] += 1
        return request

    def _recognise_session(self, request: RecordedRequest) -> None:
        before = self._last_of.get(request.group)
        if before is not None and _goes_on(request.prompt, before):
            self._sessions.add(request.group)
        self._last_of[request.group] = request


def _goes_on(prompt: TokenArray, before: RecordedRequest) -> bool:
    text = np.concatenate([before.prompt, before.output])
    return np.array_equal(prompt[: len(text)], text)
