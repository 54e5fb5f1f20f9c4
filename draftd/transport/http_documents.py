"""Documents streamed into a corpus, and the jobs that load them."""

from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from draftd.ingest import Ack, IngestError, LoadRequest, LoadUpload, Mode
from draftd.ingest.jobs import Job
from draftd.ingest.post import corpus_key, owner
from draftd.observe.readiness import Readiness
from draftd.observe.words import counted
from draftd.transport.http_answer import Answers, NotFound, Shape, success
from draftd.transport.http_body import body_in_file
from draftd.transport.http_query import choice, query_fields
from draftd.transport.loads import Loads

# To the ending of a file that holds the same.
CONTENT_TYPES = {
    "application/x-ndjson": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
    "text/plain": ".txt",
    "application/x-npz": ".npz",
    "application/x-npy": ".npy",
}
CONTENT_ENCODINGS = {"": "", "identity": "", "gzip": ".gz", "zstd": ".zst"}


class Documents:
    """The routes."""

    def __init__(self, loads: Loads, readiness: Readiness) -> None:
        self._loads = loads
        self._answers = Answers(readiness)

    async def add(self, request: Request) -> Response:
        async def call() -> Response:
            fields = query_fields(request, ("tenant", "model", "adapter", "tokenizer", "ack", "mode"))
            ack, mode = choice(fields, "ack", Ack.VISIBLE), choice(fields, "mode", Mode.ADD)
            key = corpus_key(fields | {"corpus_id": request.path_params["corpus_id"]})
            name = f"body{_endings(request)}"
            most = self._loads.settings.max_upload_bytes

            async def receive(job: Job, folder: Path) -> LoadRequest:
                body = folder / name
                await body_in_file(request, body, most, "corpora.max_upload_bytes", job.received)
                source = LoadUpload(body=body, name=name)
                return LoadRequest(key=key, tokenizer=owner(fields).tokenizer, source=source, mode=mode)

            job = await self._loads.load(key, receive, ack)
            status = HTTPStatus.ACCEPTED if ack is Ack.RECEIVED else HTTPStatus.OK
            return success({"message": _message(job), "job": _shape(job)}, status)

        return await self._answers.of(request, call)

    async def jobs(self, request: Request) -> Response:
        async def call() -> Response:
            jobs = [_shape(job) for job in self._loads.jobs.all()]
            return success({"message": counted(len(jobs), "job"), "jobs": jobs})

        return await self._answers.of(request, call)

    async def job(self, request: Request) -> Response:
        async def call() -> Response:
            job = self._found(request)
            return success({"message": _message(job), "job": _shape(job)})

        return await self._answers.of(request, call)

    async def cancel(self, request: Request) -> Response:
        async def call() -> Response:
            job = self._found(request)
            await self._loads.cancel(job)
            return success({"message": _message(job), "job": _shape(job)})

        return await self._answers.of(request, call)

    def _found(self, request: Request) -> Job:
        job_id = request.path_params["job_id"]
        if job := self._loads.jobs.get(job_id):
            return job
        raise NotFound(f"job {job_id!r}: there is none, or it ended long ago")


def _endings(request: Request) -> str:
    """Those of a file that holds the same as the body. Raises IngestError."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type not in CONTENT_TYPES:
        raise IngestError(f"content-type: {content_type!r} should be one of {', '.join(CONTENT_TYPES)}")
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in CONTENT_ENCODINGS:
        raise IngestError(f"content-encoding: {encoding!r} should be gzip or zstd, or left out")
    return CONTENT_TYPES[content_type] + CONTENT_ENCODINGS[encoding]


def _message(job: Job) -> str:
    made = f"{counted(job.documents, 'document')}, {counted(job.tokens, 'token')}"
    return f"job {job.id} is {job.state}: {job.problem or made}"


def _shape(job: Job) -> Shape:
    return {
        "id": job.id,
        "state": job.state,
        "corpus": None if job.key is None else job.key.model_dump(),
        "documents": job.documents,
        "tokens": job.tokens,
        "bytes_read": job.bytes_read,
        "bytes_total": job.bytes_total or None,
        "tokens_per_second": round(job.tokens_per_second),
        "eta_seconds": None if job.eta is None else round(job.eta, 1),
        "error": job.problem,
        "created": job.created,
    }
