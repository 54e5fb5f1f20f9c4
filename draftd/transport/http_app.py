"""The HTTP endpoint: which call is answered where; health, version and metrics."""

from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from draftd.engine import Engine
from draftd.observe import facts
from draftd.observe.readiness import Readiness
from draftd.transport.http_answer import no_such_call
from draftd.transport.http_archive import Archive
from draftd.transport.http_corpora import Corpora
from draftd.transport.http_documents import Documents
from draftd.transport.http_drafter import Drafter
from draftd.transport.http_explain import Explanations
from draftd.transport.loads import Loads
from draftd.wire import PROTOCOL


@dataclass(frozen=True, slots=True)
class Admin:
    """What the routes work on."""

    engine: Engine
    loads: Loads
    readiness: Readiness
    metrics: CollectorRegistry


def admin_app(admin: Admin) -> Starlette:
    corpora = Corpora(admin.loads, admin.readiness)
    documents = Documents(admin.loads, admin.readiness)
    archive = Archive(admin.loads, admin.readiness)
    explanations = Explanations(admin.engine.explainer, admin.loads.library, admin.readiness)
    drafter = Drafter(admin.engine, admin.readiness)
    status = _Status(admin)
    return Starlette(
        routes=[
            Route("/add_external_corpus", corpora.add, methods=["POST"]),
            Route("/remove_external_corpus", corpora.remove, methods=["POST"]),
            Route("/list_external_corpora", corpora.list, methods=["GET"]),
            Route("/corpora/{corpus_id:path}/documents", documents.add, methods=["POST"]),
            Route("/jobs", documents.jobs, methods=["GET"]),
            Route("/jobs/{job_id}", documents.job, methods=["GET"]),
            Route("/jobs/{job_id}", documents.cancel, methods=["DELETE"]),
            Route("/delete_documents", archive.delete, methods=["POST"]),
            Route("/export", archive.export, methods=["GET"]),
            Route("/import", archive.import_, methods=["POST"]),
            Route("/explain", explanations.explain, methods=["POST"]),
            Route("/draft_tokens", drafter.draft, methods=["POST"]),
            Route("/healthz", status.healthz),
            Route("/readyz", status.readyz),
            Route("/version", status.version),
            Route("/metrics", status.metrics),
        ],
        exception_handlers={HTTPException: no_such_call},
    )


class _Status:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def healthz(self, _request: Request) -> JSONResponse:
        """The process lives and its event loop turns."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> JSONResponse:
        waiting = self._admin.readiness.waiting_for()
        status = HTTPStatus.SERVICE_UNAVAILABLE if waiting else HTTPStatus.OK
        return JSONResponse({"ready": not waiting, "waiting_for": waiting}, status)

    async def version(self, _request: Request) -> JSONResponse:
        return JSONResponse(
            {
                "version": version("draftd"),
                "protocol": PROTOCOL,
                "incarnation": f"{self._admin.engine.incarnation:016x}",
            }
        )

    async def metrics(self, _request: Request) -> Response:
        text = generate_latest(self._admin.metrics) + generate_latest(facts.REGISTRY)
        return Response(text, media_type=CONTENT_TYPE_LATEST)
