"""The three calls that SGLang's clients know: a corpus is posted whole, listed, removed."""

import asyncio
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from draftd.ingest import Ack, IngestError, LoadPost, LoadRequest, Mode
from draftd.ingest.jobs import Job
from draftd.ingest.post import corpus_key, json_object, owner, refuse_unknown_fields
from draftd.observe.readiness import Readiness
from draftd.observe.words import counted
from draftd.transport.http_answer import Answers, success
from draftd.transport.http_body import body_in_file, small_body
from draftd.transport.http_query import query_fields
from draftd.transport.loads import Loads


class Corpora:
    """The routes."""

    def __init__(self, loads: Loads, readiness: Readiness) -> None:
        self._loads = loads
        self._added = Answers(readiness, {"corpus_id": "", "loaded_token_count": 0})
        self._removed = Answers(readiness)
        self._listed = Answers(readiness, {"corpus_token_counts": {}})

    async def add(self, request: Request) -> Response:
        settings = self._loads.settings

        async def receive(job: Job, folder: Path) -> LoadRequest:
            body = folder / "body.json"
            await body_in_file(request, body, settings.max_body_bytes, "corpora.max_body_bytes", job.received)
            return LoadRequest(key=None, source=LoadPost(body=body, directories=settings.directories), mode=Mode.CREATE)

        async def call() -> Response:
            job = await self._loads.load(None, receive, Ack.VISIBLE)
            assert job.key is not None, "it is loaded"
            return success(
                {
                    "corpus_id": job.key.corpus_id,
                    "message": f"corpus {job.key} holds {counted(job.tokens, 'token')}",
                    "loaded_token_count": job.tokens,
                }
            )

        return await self._added.of(request, call)

    async def remove(self, request: Request) -> Response:
        async def call() -> Response:
            fields = json_object(await small_body(request))
            refuse_unknown_fields(fields, ("corpus_id", "tenant", "model", "adapter", "tokenizer"))
            if fields.get("corpus_id") is None:
                raise IngestError("corpus_id: is missing")
            key = corpus_key(fields)
            await asyncio.to_thread(self._loads.library.remove, key, owner(fields).tokenizer)  # waits for no load
            return success({"message": f"corpus {key} is removed"})

        return await self._removed.of(request, call)

    async def list(self, request: Request) -> Response:
        async def call() -> Response:
            fields = query_fields(request, ("tenant", "model", "adapter", "tokenizer"))
            counts = dict(sorted(self._loads.library.token_counts(owner(fields)).items()))
            return success({"corpus_token_counts": counts, "message": counted(len(counts), "corpus", "corpora")})

        return await self._listed.of(request, call)
