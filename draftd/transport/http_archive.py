"""Deleting documents for good, and moving a namespace as one file."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import IO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from draftd.ingest import Selection
from draftd.ingest.post import json_object, owner, refuse_unknown_fields
from draftd.ingest.selection import parsed_selection
from draftd.observe import facts
from draftd.observe.readiness import Readiness
from draftd.observe.words import counted
from draftd.transport.http_answer import Answers, success
from draftd.transport.http_body import body_in_file, small_body
from draftd.transport.http_query import query_fields
from draftd.transport.loads import Loads, folder_for_arrivals

CHUNK = 1 << 20  # bytes of an archive that are sent at once
MEDIA_TYPE = "application/octet-stream"


class Archive:
    """The routes."""

    def __init__(self, loads: Loads, readiness: Readiness) -> None:
        self._library = loads.library
        self._most = loads.settings.max_upload_bytes
        self._answers = Answers(readiness)
        self._turn = asyncio.Lock()  # an archive is as large as a namespace: one at a time on the disk

    async def delete(self, request: Request) -> Response:
        async def call() -> Response:
            fields = json_object(await small_body(request))
            refuse_unknown_fields(fields, tuple(Selection.model_fields))
            deleted = await asyncio.to_thread(self._library.delete, parsed_selection(fields))
            message = f"deleted {counted(deleted.documents, 'document')} with {counted(deleted.tokens, 'token')}"
            if deleted.unmatched:
                message += f"; nothing is known as {', '.join(map(repr, deleted.unmatched))}"
            return success({"message": message, **asdict(deleted)})

        return await self._answers.of(request, call)

    async def export(self, request: Request) -> Response:
        async def call() -> Response:
            namespace = owner(query_fields(request, ("tenant", "model", "adapter", "tokenizer")))
            async with self._turn:
                with ExitStack() as opened:
                    archive = opened.enter_context(tempfile.TemporaryFile(dir=self._library.scratch))
                    await asyncio.to_thread(self._library.export, namespace, archive)
                    opened.pop_all()  # it is closed when it is sent
            facts.namespace_exported(str(namespace), archive.tell())
            length = {"content-length": str(archive.tell())}
            return StreamingResponse(_content(archive), media_type=MEDIA_TYPE, headers=length)

        return await self._answers.of(request, call)

    async def import_(self, request: Request) -> Response:
        async def call() -> Response:
            async with self._turn, folder_for_arrivals(self._library.scratch) as folder:
                archive = folder / "archive"
                await body_in_file(request, archive, self._most, "corpora.max_upload_bytes", lambda _: None)
                imported = await asyncio.to_thread(self._library.import_, archive)
            what = (
                f"{counted(imported.corpora, 'corpus', 'corpora')} and "
                f"{counted(imported.histories, 'history', 'histories')} with {counted(imported.tokens, 'token')}"
            )
            facts.archive_imported(what)
            fields = {"corpora": imported.corpora, "histories": imported.histories, "tokens": imported.tokens}
            return success({"message": f"imported {what}", **fields})

        return await self._answers.of(request, call)


async def _content(archive: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        archive.seek(0, os.SEEK_SET)
        while chunk := await asyncio.to_thread(archive.read, CHUNK):
            yield chunk
    finally:
        await asyncio.to_thread(archive.close)  # which gives its disk back
