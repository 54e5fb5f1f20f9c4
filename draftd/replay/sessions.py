"""Clients to replay with: an engine in this process, or a server. Each file is a model of its own at its drafter, so
files never see each other's text."""

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from draftd.client import Client, Namespace
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.corpora.library import build_index
from draftd.engine import Engine
from draftd.ingest import CorpusKey, LoadFile, LoadJob, TokenColumns
from draftd.ingest.work import load
from draftd.native import Index
from draftd.replay.runner import ReplayError

VERIFIER = "replay"
DEADLINE = 30.0  # seconds; nothing of a replay is urgent, and a late draft would spoil its figures
MOST_CORPUS_TOKENS = 2**31 - 2


def corpus_index(file: Path) -> Index:
    """An index of a file of token ids. Raises IngestError."""
    key = CorpusKey(tenant="default", model="default", adapter="", corpus_id=file.stem)
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        result = Path(folder)
        load(LoadJob(source=LoadFile(key=key, path=file), max_tokens=MOST_CORPUS_TOKENS, tokenizers=(), result=result))
        return build_index(TokenColumns.saved_in(result))


@contextmanager
def in_process(workload: str, corpora: Mapping[str, Index]) -> Iterator[LocalClient]:
    """A client of a new engine that has the given corpora."""
    namespace = Namespace(model=workload)
    engine = Engine(EngineSettings())
    try:
        for name, index in corpora.items():
            engine.publish_corpus(namespace, name, index)
        yield LocalClient(engine, namespace, verifier=VERIFIER, deadline=DEADLINE)
    finally:
        engine.close()


@contextmanager
def at_server(workload: str, endpoint: str) -> Iterator[Client]:
    """A client of a server, as a tenant that has no history there. Raises ReplayError for an endpoint that is none."""
    namespace = Namespace(tenant=f"replay-{secrets.token_hex(4)}", model=workload)
    try:
        client = Client(endpoint, namespace, verifier=VERIFIER, deadline=DEADLINE)
    except ValueError as error:
        raise ReplayError(str(error)) from None
    with client:
        yield client
