"""The requests of an engine that matches on its device: from what was seen of them to windows for their tapes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from draftd.adapters.sendable import sendable
from draftd.adapters.sightings import END_TOKENS, SeenRow, Sighting
from draftd.client import Request
from draftd.client.client import ChannelClient
from draftd.client.opening import OpenOptions
from draftd.client.tape import RING, NewWindows
from draftd.kernels.delivery import Arrival

TAPES = 4  # windows for each request and step, of which the device's slots are the size

Windows = list[NDArray[np.int32]]


@dataclass(slots=True)
class _Fed:
    """A request that draftd was told of."""

    request: Request
    row: int
    opening: int
    waiting: deque[Windows] = field(default_factory=lambda: deque(maxlen=RING))  # for a stage of the mailbox
    starts: bool = False  # what was posted has to be forgotten
    has_posted: bool = False

    def add(self, new: NewWindows) -> None:
        if new.starts:
            self.waiting.clear()
            self.starts = self.has_posted
        self.waiting.extend(new.arrivals)

    def next_arrival(self) -> Arrival | None:
        if not self.waiting and not self.starts:
            return None
        return Arrival(self.row, self.opening, self.waiting[0] if self.waiting else [], self.starts)

    def posted(self) -> None:
        if self.waiting:
            self.waiting.popleft()
        self.starts, self.has_posted = False, True


class FedRequests:
    """Belongs to one thread. Nothing raises for what a drafter or a network does.

    A request of which more was emitted unseen than a sighting holds, or that can't be opened, is let go: it is drafted
    for from its own text alone."""

    def __init__(
        self, client: ChannelClient, post: Callable[[Sequence[Arrival]], bool], most_tokens: int, options: OpenOptions
    ) -> None:
        """`post`: see DeviceMatcher. `most_tokens`: of a draft. `options`: of every request."""
        self._client = client
        self._post = post
        self._most_tokens = most_tokens
        self._options = options
        self._fed: dict[str, _Fed] = {}

    def take(self, sighting: Sighting) -> None:
        """Commits what was emitted, asks for windows, and posts those that came."""
        for request_id in self._fed.keys() - sighting.open_ids:
            self._let_go(request_id)
        commits: dict[Request, list[int]] = {}
        stated: list[_Fed] = []
        first_texts = iter(sighting.first_texts)
        for row, length, end in zip(sighting.rows, sighting.lengths, sighting.ends, strict=True):
            if row.known_length is not None:
                self._open(row, next(first_texts), commits)
            fed = self._fed.get(row.request_id)
            if fed is None:
                continue
            emitted = commits.setdefault(fed.request, [])
            unseen = length - fed.request.length - len(emitted)
            if not 0 <= unseen <= END_TOKENS:
                del commits[fed.request]
                self._let_go(row.request_id)
                continue
            emitted.extend(end[END_TOKENS - unseen :].tolist())
            stated.append(fed)
        windows = self._client.windows_ahead(commits, self._most_tokens, tapes=TAPES)
        for fed in stated:
            fed.add(windows[fed.request])
        while self._post_next():
            pass

    def _post_next(self) -> bool:
        """Of each request what has waited longest. False: nothing waits, or there is no room before the next step."""
        arrivals = list(self._arrivals())
        if not arrivals or not self._post([arrival for _, arrival in arrivals]):
            return False
        for fed, _ in arrivals:
            fed.posted()
        return True

    def _arrivals(self) -> Iterator[tuple[_Fed, Arrival]]:
        for fed in self._fed.values():
            arrival = fed.next_arrival()
            if arrival is not None:
                yield fed, arrival

    def _open(self, row: SeenRow, text: NDArray[np.int32], commits: dict[Request, list[int]]) -> None:
        self._let_go(row.request_id)
        limits = OpenOptions(max_new_tokens=row.most_new)
        try:
            request = self._client.open(
                sendable(row.request_id), text[: row.prompt_length], hold=True, **self._options | limits
            )
        except (TypeError, ValueError) as error:
            self._client.count_refused(str(error))
            return
        commits[request] = text[row.prompt_length :].tolist()
        self._fed[row.request_id] = _Fed(request, row.row, row.opening)

    def _let_go(self, request_id: str) -> None:
        fed = self._fed.pop(request_id, None)
        if fed is not None:
            self._client.close_request(fed.request, hold=True)
