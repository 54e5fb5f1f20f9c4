"""TensorRT-LLM's external drafter: drafts for an engine that posts a request's whole text before each step.

The contract is that of `APIDrafter` in tensorrt_llm/_torch/speculative/external_api.py (NVIDIA/TensorRT-LLM#5990). It
knows no end of a request, and not which of its texts belong together but for their id.
"""

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator
from starlette.requests import Request
from starlette.responses import Response

from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.client.prefixes import PrefixRequests
from draftd.engine import Engine, LimitExceeded
from draftd.ingest import IngestError
from draftd.ingest.post import owner, string_field
from draftd.observe.readiness import Readiness
from draftd.transport.http_answer import Answers, Shape, success
from draftd.transport.http_body import small_body
from draftd.transport.http_fields import Fields, ListOf, parsed, token_ids
from draftd.wire import LONGEST_LABEL, Namespace, Reason, Status

LONGEST_BODY = 4 << 20  # bytes
OVER_AFTER = 60.0  # seconds without a call after which a request counts as finished
MOST_REQUESTS = 1024  # open ones of a namespace
MOST_NAMESPACES = 64
LONGEST_NAME = (LONGEST_LABEL - 1) // 2  # bytes, of a verifier or a request: both are one label, with a "/" between


class Prefix(Fields):
    """What APIDrafter posts, and what the user has it add (its `template`)."""

    prefix: ListOf[int]  # prompt and output
    request_id: int | str
    end_id: int | None = Field(lt=2**31 - 1)  # negative or null: none
    max_sequence_length: int = Field(ge=0)  # of prompt and output
    max_draft_len: int = Field(default=16, ge=1, lt=2**16)
    verifier: str = ""
    tenant: str = "default"
    model: str = "default"
    adapter: str = ""
    tokenizer: str | None = None

    @field_validator("request_id", mode="before")
    @classmethod
    def _number_or_string(cls, value: object) -> object:
        """Said here, for of a union pydantic names the first kind alone."""
        if type(value) not in (int, str):
            raise ValueError("should be an integer or a string")
        return value


class Drafter:
    """The route. A thread of its own takes its calls in turn: no draft waits behind other routes' work."""

    def __init__(self, engine: Engine, readiness: Readiness) -> None:
        self._engine = engine
        self._answers = Answers(readiness, {"draft_tokens": []})
        self._thread = ThreadPoolExecutor(1, "http-drafts")  # one: what follows is its alone
        self._namespaces: OrderedDict[Namespace, _Namespace] = OrderedDict()  # the one longest not asked for first

    async def draft(self, request: Request) -> Response:
        async def call() -> Response:
            body = await small_body(request, LONGEST_BODY)
            # Not on the loop: a text of 128k tokens takes 25 ms to read and compare.
            return success(await asyncio.get_running_loop().run_in_executor(self._thread, self._drafted, body))

        return await self._answers.of(request, call)

    def _drafted(self, body: bytes) -> Shape:
        """Raises IngestError or LimitExceeded."""
        asked = parsed(body, Prefix)
        text = token_ids("prefix", asked.prefix)
        namespace = owner(asked.model_dump(include={"tenant", "model", "adapter", "tokenizer"}))
        if namespace not in self._namespaces:
            self._namespaces[namespace] = _Namespace(LocalClient(self._engine, namespace, verifier="http"))
        self._namespaces.move_to_end(namespace)
        now = self._namespaces[namespace].asked_at = time.monotonic()
        while len(self._namespaces) > MOST_NAMESPACES or self._idle_longest().asked_at < now - OVER_AFTER:
            self._namespaces.popitem(last=False)[1].close()
        return self._namespaces[namespace].drafted(asked, text, now)

    def _idle_longest(self) -> "_Namespace":
        return next(iter(self._namespaces.values()))


class _Namespace:
    """The requests of one."""

    def __init__(self, client: LocalClient) -> None:
        self._client = client
        self._requests = PrefixRequests(client, MOST_REQUESTS)
        self.asked_at = 0.0  # last, by the monotonic clock
        self._names: OrderedDict[str, float] = OrderedDict()  # when each was, the one longest not asked for first

    def drafted(self, asked: Prefix, text: NDArray[np.int32], now: float) -> Shape:
        """A chain of at most max_draft_len tokens, that leaves room for the target's own."""
        name = _name(asked)
        room = max(0, asked.max_sequence_length - len(text) - 1)
        stop_ids = [] if asked.end_id is None or asked.end_id < 0 else [asked.end_id]
        self._close_idle(name, now)
        draft = self._requests.drafts(
            {name: text},
            min(asked.max_draft_len, room),
            options={name: OpenOptions(shape="chain", stop_ids=stop_ids)},
        )[name]
        if draft.reason is Reason.REFUSED:
            problem = self._client.health().last_error
            self._close(name)
            raise _refusal(draft.status, problem)
        return {"draft_tokens": draft.tokens.tolist(), "reason": draft.reason.name}

    def close(self) -> None:
        """All of its requests have finished."""
        for name in list(self._names):
            self._close(name)

    def _close_idle(self, name: str, now: float) -> None:
        self._names[name] = now
        self._names.move_to_end(name)
        while len(self._names) > MOST_REQUESTS or next(iter(self._names.values())) < now - OVER_AFTER:
            self._close(next(iter(self._names)))

    def _close(self, name: str) -> None:
        """Told at once, for a message takes only some of many closes along."""
        del self._names[name]
        self._requests.close(name)
        self._client.check()


def _refusal(status: Status, problem: str) -> Exception:
    if status is Status.INTERNAL:
        return RuntimeError(problem)
    return LimitExceeded(problem) if status is Status.LIMIT_EXCEEDED else IngestError(problem)


def _name(asked: Prefix) -> str:
    """The verifier's name has no "/" in it here, so that no two pairs are one. Raises IngestError."""
    verifier = quote(_word("verifier", asked.verifier), safe="")
    request_id = _word("request_id", str(asked.request_id))
    for field, word in (("verifier", verifier), ("request_id", request_id)):
        if len(word.encode()) > LONGEST_NAME:
            raise IngestError(f"{field}: takes {len(word.encode())} bytes; give one of at most {LONGEST_NAME}")
    return f"{verifier}/{request_id}"


def _word(field: str, word: str) -> str:
    """Raises IngestError for one that can't be printed."""
    return string_field({field: word}, field, "")
