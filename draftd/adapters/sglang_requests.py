"""What an SGLang batch tells draftd, and the trees that it gets back. Imports nothing of SGLang."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.settings import AdapterSettings
from draftd.adapters.stop_ids import token_ids_among
from draftd.client.client import ChannelClient
from draftd.client.opening import OpenOptions
from draftd.client.trees import TreeBatch, tree_batch


class SglangRequest(Protocol):
    """What is read of an sglang.srt.managers.schedule_batch.Req; OptionsOf reads the rest."""

    @property
    def rid(self) -> str: ...
    @property
    def origin_input_ids_unpadded(self) -> Sequence[int]: ...
    @property
    def output_ids(self) -> Sequence[int]: ...
    def finished(self) -> bool: ...


OptionsOf = Callable[[Any], OpenOptions]  # of a request, when it is opened


def open_options(
    request: Any, settings: AdapterSettings, *, adapter: str, shape: Literal["tree", "chain"]
) -> OpenOptions:
    """What a Req states when it opens."""
    sampling = request.sampling_params
    return {
        **settings.options(adapter=adapter),
        "shape": shape,
        "stop_ids": [] if sampling.ignore_eos else sorted(token_ids_among(_stop_ids(request))),
        "max_new_tokens": ceil(sampling.max_new_tokens),  # SGLang takes 9.5, and stops after 10
        "temperature": 0.0 if sampling.top_k == 1 else sampling.temperature,
    }


def _stop_ids(request: Any) -> set[int]:
    """Where SGLang looks for them, which with ignore_eos it does nowhere."""
    stop_ids = {*(request.sampling_params.stop_token_ids or ()), *(request.eos_token_ids or ())}
    tokenizer = request.tokenizer
    if tokenizer is not None:
        stop_ids |= {*(tokenizer.additional_stop_token_ids or ())}
        stop_ids |= set() if tokenizer.eos_token_id is None else {tokenizer.eos_token_id}
    return stop_ids


class SglangRequests:
    """The requests of one scheduler as requests of `client`, by their rid. Belongs to the scheduler's thread.

    A request that left the batch is over if it has finished; if it has not, it was retracted and comes back.
    """

    def __init__(self, client: ChannelClient, width: int, options_of: OptionsOf) -> None:
        self._requests = EngineRequests(client)
        self._width = width  # of a request's tree, its root included
        self._options_of = options_of
        self._texts: dict[str, _Text] = {}

    def __repr__(self) -> str:
        return f"SglangRequests({self._requests}, trees of {self._width})"

    def trees(self, batch: Sequence[SglangRequest], accepted: Sequence[Sequence[int]]) -> TreeBatch:
        """A tree for each request of the batch, by one message.

        `accepted` are the tokens of each that the last step emitted and that are not in its output_ids yet.
        """
        running: dict[str, SglangRequest] = {}
        for request in batch:
            running.setdefault(request.rid, request)
        self._let_go(running)
        rows = [self._row(request, tokens) for request, tokens in zip(batch, accepted, strict=True)]
        drafts = self._requests.step(rows)
        return tree_batch(drafts, list(map(_last_token, batch, accepted)), self._width)

    def prefilled(self) -> None:
        """The scheduler ran a prefill between two steps."""
        self._requests.step_clock.forget()

    def finish(self, rid: str) -> None:
        """The request has emitted its last token: what of it was not stated yet is, and it closes, both at once."""
        text = self._texts.pop(rid, None)
        if text is None:
            return
        request = text.request()
        last = text.tokens
        if request is not None and text.goes_on(request.output_ids):
            last = text.until(request.output_ids)
        self._requests.finish(EngineRow(rid, last, text.prompt_length, max_nodes=0))

    def _let_go(self, running: Mapping[str, SglangRequest]) -> None:
        for rid, text in list(self._texts.items()):
            request = text.request()
            if rid in running:
                is_over = running[rid] is not request or not text.goes_on(running[rid].output_ids)
            else:
                is_over = request is None or request.finished()
            if is_over:
                self.finish(rid)

    def _row(self, request: SglangRequest, accepted: Sequence[int]) -> EngineRow:
        text = self._texts.get(request.rid)
        if text is None:
            text = self._texts[request.rid] = _Text(request)
        if text.request() is not request:  # users may choose the rid: this is another's, who gets the drafts
            return EngineRow(request.rid, text.tokens, text.prompt_length, max_nodes=0)
        return EngineRow(
            request.rid,
            text.until(request.output_ids, accepted),
            text.prompt_length,
            max_nodes=self._width - 1,
            options=None if request.rid in self._requests else self._options_of(request),
        )


def _last_token(request: SglangRequest, accepted: Sequence[int]) -> int:
    """The root of its tree. It goes into the model, so it is read off the request, whatever else is known of it."""
    return int((accepted or request.output_ids or request.origin_input_ids_unpadded)[-1])


class _Text:
    """The committed tokens of a request, in one array that grows with them: prompt, then output."""

    def __init__(self, request: SglangRequest) -> None:
        self.request = weakref.ref(request)  # the scheduler drops requests that are aborted while they are retracted
        self.tokens = self._room = np.array(request.origin_input_ids_unpadded, np.int32)
        self.prompt_length = len(self.tokens)
        self._output = request.output_ids  # as it was the last time
        self._settled = 0  # tokens of the output that came out of it

    def goes_on(self, output: Sequence[int]) -> bool:
        """Does `output` agree with what was stated? All of it is looked at only if it is another array than before: one
        array grows. SGLang starts requests of embeddings anew when they are retracted."""
        stated = self.tokens[self.prompt_length :]
        same = output is self._output
        least = self._settled if same else len(stated)
        first = max(0, self._settled - 1) if same else 0
        read = list(output[first : len(stated)])
        return len(output) >= least and stated[first : first + len(read)].tolist() == read

    def until(self, output: Sequence[int], accepted: Sequence[int] = ()) -> NDArray[np.int32]:
        """int32[n], valid until the next call: the prompt, `output`, `accepted`.

        Reads only what of `output` is new since the last call: it goes on.
        """
        new = [*output[self._settled :], *accepted]
        start = self.prompt_length + self._settled
        end = start + len(new)
        if end > len(self._room):
            self._room = np.concatenate([self._room, np.empty(end, np.int32)])
        self._room[start:end] = new
        self._output, self._settled = output, len(output)
        self.tokens = self._room[:end]
        return self.tokens
