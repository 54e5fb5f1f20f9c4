"""Clients to replay with: an engine in this process, or a server. Each file is a model of its own at its drafter, so
files never see each other's text."""

import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.client import Client, Namespace
from draftd.client.local import LocalClient
from draftd.config import DraftingSettings, EngineSettings
from draftd.engine import Engine
from draftd.ingest import SEGMENT, Cancellation, CorpusKey, Loader, LoadFile, LoadJob, LoadRequest
from draftd.native import Segment
from draftd.replay.runner import ReplayError

VERIFIER = "replay"
CHECK_SECONDS = 3.0  # for a server's first sign of life
DEADLINE = 30.0  # seconds; nothing of a replay is urgent, and a late draft would spoil its figures
MOST_CORPUS_TOKENS = 2**31 - 2


class Drafters:
    """Makes a client for each replay: of a new engine in this process, or of the server at `endpoint`.

    The rest is of engines in this process: `corpora`; `in_flight`, whether requests read what others under way have
    said; `priors`, what namespaces start with, as in the settings (None: what is configured by default). Raises
    ReplayError for any of it beside an endpoint, and what reading a corpus raises.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        corpora: Sequence[Path] = (),
        *,
        in_flight: bool = True,
        priors: str | None = None,
    ) -> None:
        if endpoint is not None and corpora:
            raise ReplayError("a corpus file is for a replay in process; for a server use `draftd corpus add`")
        if endpoint is not None and not in_flight:
            raise ReplayError("in-flight sharing is switched off in process; a server has history.in_flight for it")
        if endpoint is not None and priors is not None:
            raise ReplayError("priors are for a replay in process; a server has drafting.priors for them")
        self._endpoint = endpoint
        self._drafting = DraftingSettings.model_validate({} if priors is None else {"priors": priors})
        self._in_flight = in_flight
        self._corpora = corpora
        self._segments = {file.stem: corpus_segment(file) for file in corpora}
        self.left: list[Namespace] = []
        """Whose text and lessons a server keeps from these replays."""

    @contextmanager
    def client(self, workload: str) -> Iterator[Client | LocalClient]:
        if self._endpoint is None:
            with in_process(workload, self._segments, in_flight=self._in_flight, drafting=self._drafting) as local:
                yield local
        else:
            with at_server(workload, self._endpoint) as client:
                self.left.append(client.namespace)
                yield client

    def as_dict(self) -> dict[str, object]:
        """What was asked for, for JSON; null where it is the server's to say."""
        here = self._endpoint is None
        return {
            "endpoint": self._endpoint,
            "corpora": [str(file) for file in self._corpora],
            "in_flight": self._in_flight if here else None,
            "priors": str(self._drafting.priors) if here else None,
        }

    def __str__(self) -> str:
        without = "" if self._in_flight else ", without in-flight sharing"
        return f"{self._endpoint or 'in process'}{without}"


def corpus_segment(file: Path) -> Segment:
    """A segment of a file of token ids. Raises IngestError or LoaderError."""
    key = CorpusKey(tenant="default", model="default", adapter="", corpus_id=file.stem)
    request = LoadRequest(key=key, source=LoadFile(path=file.absolute()))
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        Loader(processes=1).load(
            LoadJob(request=request, max_tokens=MOST_CORPUS_TOKENS, tokenizers=(), result=Path(folder)),
            on_opened=lambda _: None,
            on_progress=lambda _: None,
            cancelled=Cancellation(),
        )
        return Segment.open(Path(folder) / SEGMENT)  # mapped: the file may go


@contextmanager
def in_process(
    workload: str,
    corpora: Mapping[str, Segment],
    *,
    in_flight: bool = True,
    drafting: DraftingSettings = DraftingSettings(),  # noqa: B008  (frozen)
) -> Iterator[LocalClient]:
    """A client of a new engine that has the given corpora. Raises ReplayError for priors that can't be used."""
    namespace = Namespace(model=workload)
    try:
        engine = Engine(EngineSettings(), drafting, in_flight=in_flight)
    except ValueError as error:
        raise ReplayError(str(error)) from error
    try:
        for name, segment in corpora.items():
            engine.publish_corpus(namespace, name, [segment])
        yield LocalClient(engine, namespace, verifier=VERIFIER, deadline=DEADLINE)
    finally:
        engine.close()


@contextmanager
def at_server(workload: str, endpoint: str) -> Iterator[Client]:
    """A client of a server, as a tenant that has no history there.

    Raises ReplayError for an endpoint that is none, or where no server answers."""
    namespace = Namespace(tenant=f"replay-{secrets.token_hex(4)}", model=workload)
    try:
        client = Client(endpoint, namespace, verifier=VERIFIER, deadline=DEADLINE)
    except ValueError as error:
        raise ReplayError(str(error)) from None
    with client:
        seen = client.check(CHECK_SECONDS)
        if seen.state != "serving":
            raise ReplayError(
                f"no server answers at {endpoint} ({seen.last_error or seen.state}): give an endpoint that "
                "`draftd serve` printed, or leave --endpoint out to replay in process"
            )
        yield client
