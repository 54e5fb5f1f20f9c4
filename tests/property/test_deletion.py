"""After a deletion is acknowledged, drafts are those of a server that never had what was deleted; no file has it."""

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from draftd.client.local import LocalClient
from draftd.config import EngineSettings, Settings
from draftd.corpora import CorpusLibrary
from draftd.engine import Engine
from draftd.ingest import Cancellation, CorpusKey, LoadRequest, LoadUpload, Selection
from draftd.wire import Namespace
from tests.unit.corpora.loader_here import LoaderHere

NAMESPACE = Namespace("acme", "m")
CORPUS = CorpusKey(tenant="acme", model="m", adapter="", corpus_id="docs")
LABELS = ("keep-1", "keep-2", "secret-1", "secret-2")
SECRETS = tuple(label for label in LABELS if label.startswith("secret"))

Document = tuple[str, list[int]]

DOCUMENTS = st.tuples(st.sampled_from(LABELS), st.lists(st.integers(0, 5), min_size=1, max_size=12))
LOADS = st.lists(st.lists(DOCUMENTS, min_size=1, max_size=3), max_size=3)


class World:
    """A server in this process, but for its sockets."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.start()

    def start(self) -> None:
        self.engine = Engine(EngineSettings())
        scratch = self.folder / "incoming"
        scratch.mkdir(exist_ok=True)
        options = Settings.model_validate({"history": {"flush_seconds": 3600.0}})
        self.library = CorpusLibrary(self.engine, LoaderHere(), options, self.folder, scratch)
        self.library.open()
        self.client = LocalClient(self.engine, NAMESPACE)

    def stop(self) -> None:
        self.library.close()
        self.engine.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def play(self, loads: list[list[Document]], outputs: list[Document], *, wait: bool = True) -> None:
        """Without waiting, the outputs may still be on their way into the history when it returns."""
        for documents in loads:
            if documents:
                body = self.folder / "body.jsonl"
                body.write_text("\n".join(json.dumps({"id": label, "token_ids": ids}) for label, ids in documents))
                request = LoadRequest(key=CORPUS, source=LoadUpload(body=body, name=body.name))
                self.library.load(request, on_progress=lambda _: None, on_ack=lambda _: None, cancelled=Cancellation())
                body.unlink()
        for label, tokens in outputs:
            opened = self.client.open(label, [9])
            self.client.commit({opened: tokens})
            opened.close()
        if wait:
            self.client.open("fence", [9], wait=True).close()

    def delete(self, of_history: dict[str, object]) -> None:
        place = {"tenant": "acme", "model": "m"}
        if self.library.token_counts(NAMESPACE):
            self.library.delete(Selection.model_validate({**place, "corpus_id": "docs", "document_ids": SECRETS}))
        self.library.delete(Selection.model_validate({**place, "history": True, **of_history}))

    def seal(self) -> None:
        """So that the kept part of the history has one form, whatever was deleted beside it."""
        self.library._keeper.seal_all(NAMESPACE)

    def drafts(self, contexts: list[list[int]]) -> list[tuple[list[int], list[int], list[float]]]:
        found = []
        for context in contexts:
            request = self.client.open("asks", context[:-1], share="none", wait=True)
            draft = self.client.step({request: context[-1:]}, max_nodes=8)[request]
            found.append((draft.tokens.tolist(), draft.parents.tolist(), draft.survival.tolist()))
            request.close()
        return found

    def bytes_on_disk(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


def kept(documents: list[Document]) -> list[Document]:
    return [(label, tokens) for label, tokens in documents if label not in SECRETS]


CONTEXTS = st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=6), max_size=4)


@settings(max_examples=25)
@given(
    loads=LOADS,
    outputs=st.lists(DOCUMENTS, max_size=4),
    times=st.sampled_from([1, 20_000]),
    wait=st.booleans(),
    of_history=st.sampled_from([{"request_ids": SECRETS}, {}, {"older_than": 2**40}]),
    contexts=CONTEXTS,
)
@example(
    loads=[], outputs=[("keep-1", [0] * 12)], times=20_000, wait=False, of_history={}, contexts=[[0, 0]]
)  # most of it is not indexed yet when it is deleted
def test_drafts_are_as_if_it_had_never_been(
    loads: list[list[Document]],
    outputs: list[Document],
    times: int,
    wait: bool,
    of_history: dict[str, object],
    contexts: list[list[int]],
) -> None:
    world, without = World(), World()
    outputs = [(label, tokens * times) for label, tokens in outputs]
    try:
        world.play(loads, outputs, wait=wait)
        world.delete(of_history)
        world.seal()
        without.play([kept(documents) for documents in loads], kept(outputs) if "request_ids" in of_history else [])
        without.seal()
        assert world.drafts(contexts) == without.drafts(contexts)
        assert b"secret" not in world.bytes_on_disk()
        world.restart()
        without.restart()
        assert world.drafts(contexts) == without.drafts(contexts)
    finally:
        world.close()
        without.close()
