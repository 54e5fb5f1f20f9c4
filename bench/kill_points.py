"""kill -9 at random points of loads, merges, deletions, removals, imports, seals and manifest writes, and what a start
finds.

    python -m bench.kill_points [--points 200] [--seed 1]

A real server on one data directory is killed while it does one of these, started again, and asked for all it holds.
Whatever was acknowledged has to be there, and of what was not, all or nothing. Ends with status 1 if it is not so.
"""

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.killable import Contents, Documents, KillableServer, ServerDied
from draftd.client import Client, Namespace
from draftd.observe.terminal import console

TENANT = "acme"
MOVED = "moved"  # the tenant of what is imported
CORPUS = "docs"
MOST_DOCUMENTS = 2000  # of the corpus, before it begins anew
DOCUMENTS = 40  # of one load
REQUESTS = 80  # that finish in one point, at most
TOKENS = 50  # of a document or an output
TAUGHT_FROM = 25  # an output comes in two steps, so that the second tells what became of a draft, and is a lesson
# Small, so that histories seal and merge all the time.
SETTINGS = {"HISTORY__FLUSH_SECONDS": "0.05", "HISTORY__SEAL_TOKENS": "1000"}

Corpora = Mapping[str, Documents]


class Inconsistent(AssertionError):
    """What a start found is neither the state before a change nor the state after."""


@dataclass(frozen=True, slots=True)
class Change:
    """A call, the corpora once it is acknowledged, and when the kill comes: at the latest so many times what a load
    takes after the call; None: at a manifest write."""

    call: Callable[[], None]
    after: Corpora
    loads: float | None
    whole: bool = False  # of several corpora all or none


@dataclass
class Row:
    """What became of the points of one kind."""

    points: int = 0
    acknowledged: int = 0  # before the kill
    done: int = 0  # of the others, those whose effect is there all the same
    restart_seconds: list[float] = field(default_factory=list)


class Points:
    """A server, what it has to hold, and the changes that it is killed in."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rows: dict[str, Row] = {}
        self._chance = random.Random(seed)
        self._server = KillableServer(folder, **SETTINGS)
        self._corpora: Corpora = {}
        self._durable: list[str] = []  # requests that were found in the history
        self._finished: list[str] = []  # those that finished since
        self._numbers = itertools.count()
        self._server.start()
        started = time.perf_counter()
        self._server.add(TENANT, "measured", self._documents())
        self._load_seconds = time.perf_counter() - started
        self._server.remove(TENANT, "measured")

    def close(self) -> None:
        self._server.kill()

    def run(self, kind: str) -> None:
        """One point. Raises Inconsistent."""
        changes = {
            "load": self._load,
            "merge": self._merge,
            "delete": self._delete,
            "remove": self._remove,
            "import": self._import,
            "history": self._history,
            "manifest": self._write_manifest,
        }
        if len(self._corpora.get(CORPUS, {})) > MOST_DOCUMENTS:
            self._server.remove(TENANT, CORPUS)
            self._corpora = {name: documents for name, documents in self._corpora.items() if name != CORPUS}
        change = changes[kind]()
        row = self.rows.setdefault(kind, Row())
        acknowledged = self._killed_in(change)
        row.points += 1
        row.acknowledged += acknowledged
        row.restart_seconds.append(self._server.start())
        found = self._found()
        row.done += not acknowledged and found.corpora == change.after
        if change.whole and found.corpora not in (self._corpora, change.after):
            raise Inconsistent(f"{row.points} points: of several corpora some: {sorted(found.corpora)}")
        self._check(found, change.after, acknowledged)

    def _load(self) -> Change:
        loaded = self._documents()
        return Change(lambda: self._server.add(TENANT, CORPUS, loaded), self._with(loaded), loads=1.3)

    def _merge(self) -> Change:
        """After a load that may make a segment too many."""
        loaded = self._documents()
        self._server.add(TENANT, CORPUS, loaded)
        self._corpora = self._with(loaded)
        return Change(lambda: None, self._corpora, loads=2.0)

    def _delete(self) -> Change:
        """Of documents that lie in several segments."""
        documents = self._corpora.get(CORPUS, {})
        if not documents:
            return self._load()
        gone = self._chance.sample(sorted(documents), 5)
        left = {label: tokens for label, tokens in documents.items() if label not in gone}
        after = {**self._corpora, CORPUS: left}
        return Change(lambda: self._server.delete(tenant=TENANT, corpus_id=CORPUS, document_ids=gone), after, loads=4.0)

    def _remove(self) -> Change:
        if CORPUS not in self._corpora:
            return self._load()
        after = {name: documents for name, documents in self._corpora.items() if name != CORPUS}
        return Change(lambda: self._server.remove(TENANT, CORPUS), after, loads=0.05)

    def _import(self) -> Change:
        """Of two corpora, all or nothing; they are removed before, if an earlier one brought them."""
        moved = {f"{MOVED}/{name}": self._documents() for name in ("first", "second")}
        for name in moved:
            if name in self._corpora:
                self._server.remove(MOVED, name.partition("/")[2])
        self._corpora = {name: documents for name, documents in self._corpora.items() if name not in moved}
        for name, documents in moved.items():
            self._server.add(MOVED, name.partition("/")[2], documents)
        archive = self._server.export(MOVED)
        for name in moved:
            self._server.remove(MOVED, name.partition("/")[2])
        return Change(lambda: self._server.import_(archive), {**self._corpora, **moved}, loads=0.15, whole=True)

    def _history(self) -> Change:
        """Requests finish, and the history is written, sealed and merged; what they taught is written beside it."""

        def call() -> None:
            with Client(self._server.endpoint, Namespace(TENANT), verifier="bench", deadline=1) as client:
                for _ in range(REQUESTS):
                    if client.check().state != "serving":
                        raise ServerDied("it serves no more")
                    label = f"request-{next(self._numbers)}"
                    request = client.open(label, [1], wait=True)
                    client.step({request: tokens_of(label)[:TAUGHT_FROM]})
                    client.step({request: tokens_of(label)[TAUGHT_FROM:]})
                    self._finished.append(label)
                    request.close()

        return Change(call, self._corpora, loads=2.0)

    def _write_manifest(self) -> Change:
        loaded = self._documents()
        return Change(lambda: self._server.add(TENANT, CORPUS, loaded), self._with(loaded), loads=None)

    def _documents(self) -> Documents:
        return {label: tokens_of(label) for label in (f"{next(self._numbers)}" for _ in range(DOCUMENTS))}

    def _with(self, loaded: Documents) -> Corpora:
        return {**self._corpora, CORPUS: self._corpora.get(CORPUS, {}) | loaded}

    def _found(self) -> Contents:
        """Of both tenants."""
        found = self._server.contents(TENANT)
        moved = self._server.contents(MOVED).corpora
        found.corpora |= {f"{MOVED}/{name}": documents for name, documents in moved.items()}
        return found

    def _killed_in(self, change: Change) -> bool:
        """Whether it was acknowledged before."""
        acknowledged = threading.Event()

        def call() -> None:
            try:
                change.call()
            except ServerDied:
                return
            acknowledged.set()

        calling = threading.Thread(target=call)
        calling.start()
        if change.loads is None:
            wait_for_manifest(self._server.folder / "collections", 2 * self._load_seconds)
            time.sleep(self._chance.choice((0.0, 0.001, 0.004)))
        else:
            time.sleep(self._chance.uniform(0, change.loads) * self._load_seconds)
        self._server.kill()
        calling.join()
        return acknowledged.is_set()

    def _check(self, found: Contents, after: Corpora, acknowledged: bool) -> None:
        for name in {*self._corpora, *after, *found.corpora}:
            has, had, gets = found.corpora.get(name), self._corpora.get(name), after.get(name)
            if has != gets if acknowledged else not is_between(has, had, gets):
                raise Inconsistent(f"corpus {name}: {_size(has)}; before {_size(had)}, after {_size(gets)}")
        self._corpora = found.corpora
        self._check_history([label for label, _ in found.history])
        if any(tokens != tokens_of(label) for label, tokens in found.history):
            raise Inconsistent("an output of the history is not whole")
        if (quarantine := self._server.folder / "quarantine").exists():
            raise Inconsistent(f"something was damaged: {quarantine}")

    def _check_history(self, labels: list[str]) -> None:
        """What was found once stays, and of what finished since there are the first ones."""
        known = len(self._durable)
        if labels[:known] != self._durable or labels[known:] != self._finished[: len(labels) - known]:
            raise Inconsistent(
                f"history: {len(labels)} outputs; {known} were durable, {len(self._finished)} more ended"
            )
        self._durable, self._finished = labels, []


def tokens_of(label: str) -> tuple[int, ...]:
    """The same for the same label."""
    chance = random.Random(label)
    return tuple(chance.randrange(1000) for _ in range(TOKENS))


def is_between(has: Documents | None, had: Documents | None, gets: Documents | None) -> bool:
    """A load, or a whole corpus, is there or not; of a deletion that was not acknowledged, any part may be done."""
    if has in (had, gets):
        return True
    return has is not None and had is not None and gets is not None and gets.items() <= has.items() <= had.items()


def wait_for_manifest(collections: Path, seconds: float) -> None:
    """Until one is being written below this folder; at most so long."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if next(collections.glob("*/manifest.json.*"), None) is not None:
            return


def _size(documents: Documents | None) -> str:
    return "absent" if documents is None else f"{len(documents)} documents"


KINDS = ("load", "merge", "delete", "history", "manifest", "import", "remove")


def run(points: int, seed: int, folder: Path) -> dict[str, Row]:
    """Raises Inconsistent."""
    running = Points(folder, seed)
    try:
        for _, kind in zip(range(points), itertools.cycle(KINDS), strict=False):
            running.run(kind)
    finally:
        running.close()
    return running.rows


def table(rows: Mapping[str, Row]) -> Table:
    printed = Table("killed in", "points", "acknowledged", "not, but done", "restart p50 s", "max s")
    for column in printed.columns[1:]:
        column.justify = "right"
    for kind, row in rows.items():
        seconds = np.array(row.restart_seconds)
        printed.add_row(
            kind,
            f"{row.points}",
            f"{row.acknowledged}",
            f"{row.done}",
            f"{np.median(seconds):.2f}",
            f"{seconds.max():.2f}",
        )
    return printed


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        try:
            rows = run(options.points, options.seed, Path(folder) / "data")
        except Inconsistent as error:
            sys.exit(f"inconsistent: {error}")
    console().print(table(rows))
    print("nothing acknowledged was lost, nothing was half-visible")


if __name__ == "__main__":
    main()
