"""Where segments are built: in processes of the loader, each charged before it begins."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.corpora.ledger import Charge, Ledger
from draftd.corpora.segments import Fresh, Held
from draftd.ingest import (
    SEGMENT,
    Built,
    Cancellation,
    Loader,
    LoadJob,
    Opened,
    Progress,
    RebuildJob,
    SealJob,
    Selection,
)
from draftd.ingest.columns import ColumnsWriter
from draftd.native import Segment
from draftd.storage import Scratch
from draftd.wire import HistoryDocuments, Namespace

# More than a segment takes: token and entry of at most 31 bits each, and keys; a row for each document, and its label.
BYTES_OF_TOKEN = 9
BYTES_OF_DOCUMENT = 64
BYTES_OF_OBJECT = 4096  # beside what is mapped
GROWTH = 1.25  # of several made into one, whose numbers are wider; what takes more is refused when it is built
BUILDING_BYTES_OF_TOKEN = 20  # of the process that builds it
BUILDING_BYTES_OF_LABEL = 3  # for each of its bytes: all labels are in one string, which is copied when it grows


class Workshop:
    """Each call is a context: what its caller did not adopt when it is left is gone. They raise OverLimit, LoaderError.

    `turn`: held by who changes segments that exist, from choosing them to publishing, so that one does at a time."""

    def __init__(self, loader: Loader, ledger: Ledger, scratch: Scratch) -> None:
        self.turn = threading.RLock()
        self.ledger = ledger
        self._scratch = scratch
        self._loader = loader

    @contextmanager
    def loaded(
        self,
        job: Callable[[Path], LoadJob],
        on_opened: Callable[[Opened], None],
        on_progress: Callable[[Progress], None],
        cancelled: Cancellation,
    ) -> Iterator[tuple[Opened, Fresh]]:
        """The segment of a load; loads don't wait for each other. `job` gets the folder for its result."""
        opened: list[Opened] = []
        with self._bench() as bench:

            def charge(now: Progress) -> None:
                bench.hold(now.tokens, now.documents, now.label_bytes)
                on_progress(now)

            def begin(now: Opened) -> None:
                on_opened(now)
                opened.append(now)
                bench.charge = self.ledger.charge(owner_of(now))

            built = self._loader.load(job(bench.folder), on_opened=begin, on_progress=charge, cancelled=cancelled)
            fresh = bench.fresh(built)
            assert fresh is not None, "a load without a token is refused"
            yield opened[0], fresh

    @contextmanager
    def rebuilt(
        self, owner: Namespace, inputs: Sequence[tuple[Path, Held]], dropped: Selection | None
    ) -> Iterator[tuple[Fresh | None, Built]]:
        """One segment of several, without the documents that `dropped` picks; None: nothing is left."""
        with self._bench() as bench:
            bench.charge = self.ledger.charge(owner)
            files = [held.file for _, held in inputs]
            tokens, size = sum(file.tokens for file in files), sum(file.bytes for file in files)
            # One segment with less in it takes no more.
            most = int(size * (GROWTH if len(files) > 1 else 1)) + BYTES_OF_OBJECT
            labels = max(size - tokens * BYTES_OF_TOKEN, 0)  # what else is there
            bench.hold(tokens, sum(file.documents for file in files), labels, most)
            job = RebuildJob(inputs=tuple(path for path, _ in inputs), dropped=dropped, result=bench.folder)
            built = self._loader.rebuild(job, on_progress=_ignore, cancelled=Cancellation())
            yield bench.fresh(built), built

    @contextmanager
    def sealed(self, owner: Namespace, documents: HistoryDocuments) -> Iterator[Fresh | None]:
        """The segment of a history's head; None: it holds no token."""
        if not len(documents.token_ids):
            yield None
            return
        with self._bench() as bench:
            bench.charge = self.ledger.charge(owner)
            label_bytes = sum(len(label.encode()) for label in documents.labels)
            bench.hold(len(documents.token_ids), len(documents.times), label_bytes)
            columns = bench.folder / "columns"
            columns.mkdir()
            with ColumnsWriter(columns) as writer:
                writer.append(documents.token_ids, documents.document_ends, documents.labels, documents.times)
            fingerprint = documents.namespace.tokenizer or ""
            job = SealJob(columns=columns, fingerprint=fingerprint, result=bench.folder)
            yield bench.fresh(self._loader.seal(job, on_progress=_ignore, cancelled=Cancellation()))

    @contextmanager
    def _bench(self) -> Iterator["_Bench"]:
        with self._scratch.folder() as folder:
            bench = _Bench(folder)
            try:
                yield bench
            finally:
                bench.close()


class _Bench:
    """One job: its folder, its charge, and the segment that it made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.charge: Charge | None = None
        self._fresh: Fresh | None = None

    def hold(self, tokens: int, documents: int, label_bytes: int, most: int | None = None) -> None:
        """For building a segment of so many; `most`: bytes that it will not pass."""
        assert self.charge is not None
        rows = documents * BYTES_OF_DOCUMENT
        estimate = tokens * BYTES_OF_TOKEN + rows + label_bytes
        building = tokens * BUILDING_BYTES_OF_TOKEN + rows + label_bytes * BUILDING_BYTES_OF_LABEL
        self.charge.hold(estimate if most is None else most, building=building)

    def fresh(self, built: Built) -> Fresh | None:
        assert self.charge is not None
        if built.tokens == 0:
            return None
        segment = Segment.open(self.folder / SEGMENT)
        self.charge.hold(segment.memory_size)
        self._fresh = Fresh(self.folder / SEGMENT, segment, self.charge)
        return self._fresh

    def close(self) -> None:
        if self.charge is not None and not (self._fresh and self._fresh.adopted):
            self.charge.release()


def owner_of(opened: Opened) -> Namespace:
    """Whose bytes they are."""
    return Namespace(opened.key.tenant, opened.key.model, adapter=opened.key.adapter)


def _ignore(_progress: Progress) -> None:
    pass
