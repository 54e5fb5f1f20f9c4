"""Requests of engines that state their whole text at each call, and don't say what of it is new."""

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from draftd.client.client import ChannelClient
from draftd.client.draft import Draft
from draftd.client.opening import OpenOptions
from draftd.client.request import CloseWord, Request
from draftd.client.rows import Verified

NO_OPTIONS: Mapping[str, OpenOptions] = MappingProxyType({})


class PrefixRequests:
    """What extends the text known of an id is a commit; a text that disagrees opens the request again.

    At most `most` requests stay open: of more, those longest not asked for are closed as finished. For one thread.
    """

    def __init__(self, client: ChannelClient, most: int = 1024) -> None:
        if most < 1:
            raise ValueError(f"most is {most}; keep at least 1 request open")
        self._client = client
        self._most = most
        self._requests: OrderedDict[str, Request] = OrderedDict()  # the one longest not asked for comes first

    def drafts(
        self,
        texts: Mapping[str, ArrayLike],
        max_nodes: int = 16,
        *,
        verified: Mapping[str, Verified] | None = None,
        options: Mapping[str, OpenOptions] = NO_OPTIONS,
    ) -> dict[str, Draft]:
        """What may follow each text, all of it committed (prompt and output), in one message.

        `verified` says how much of the latest drafts went through the target (see Request.commit), `options` what a
        request states when it opens. The first text of an id is its prompt. A token id that is negative or outside the
        vocabulary is refused by the drafter: that row's draft is empty, its reason REFUSED; the others get theirs.
        Raises ValueError for what is no row of integers and for a `verified` id without a text, before anything has
        changed.
        """
        rows = {request_id: _row(request_id, text) for request_id, text in texts.items()}
        for request_id in verified or ():
            if request_id not in rows:
                raise ValueError(
                    f"verified has request {request_id!r}, which is not among the texts; give its text too"
                )
        commits: dict[Request, list[int]] = {}
        for request_id, text in rows.items():
            request, tokens = self._request(request_id, text, options.get(request_id, OpenOptions()))
            commits[request] = tokens
        said = {self._requests[request_id]: nodes for request_id, nodes in (verified or {}).items()}
        drafts = dict(zip(rows, self._client.step(commits, max_nodes=max_nodes, verified=said).values(), strict=True))
        while len(self._requests) > self._most:
            self.close(next(iter(self._requests)))
        return drafts

    def extends(self, request_id: str, text: ArrayLike) -> int | None:
        """By how many tokens the text extends what is known of that id. None: it disagrees, or nothing is known."""
        request = self._requests.get(request_id)
        row = _row(request_id, text)
        return len(row) - request.length if request is not None and _begins_with_all_of(row, request) else None

    def close(self, request_id: str, reason: CloseWord = "finished") -> None:
        """The request is over; the next message says so. An id that is not open is none of its business."""
        request = self._requests.pop(request_id, None)
        if request is not None:
            self._client.close_request(request, reason, hold=True)

    def __repr__(self) -> str:
        return f"PrefixRequests({len(self._requests)} open, at most {self._most})"

    def _request(self, request_id: str, text: NDArray[np.integer], options: OpenOptions) -> tuple[Request, list[int]]:
        """The request of that text, and what is to be committed to it."""
        request = self._requests.get(request_id)
        if request is None or not _begins_with_all_of(text, request):
            prompt_length = len(text)
            if request is not None and _begins_with_prompt(text, request):
                prompt_length = request.mirror.prompt_length  # the output was taken back in part
            request = self._client.open(request_id, text[:prompt_length], hold=True, **options)
            self._requests[request_id] = request
        self._requests.move_to_end(request_id)
        return request, text[request.length :].tolist()


def _row(request_id: str, text: ArrayLike) -> NDArray[np.integer]:
    row = np.asarray(text)
    if row.size == 0:
        return np.empty(0, np.int32)
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise ValueError(
            f"text of request {request_id!r} is {row.ndim} dimensions of {row.dtype}; give a row of token ids"
        )
    return row


def _begins_with_prompt(text: NDArray[np.integer], request: Request) -> bool:
    prompt = np.frombuffer(request.mirror.prompt, "<i4")
    return np.array_equal(text[: len(prompt)], prompt)


def _begins_with_all_of(text: NDArray[np.integer], request: Request) -> bool:
    output = text[request.mirror.prompt_length : request.length].tolist()
    return output == request.mirror.output and _begins_with_prompt(text, request)
