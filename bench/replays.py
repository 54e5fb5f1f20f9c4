"""Replays to be measured: each once, whoever asks for it, in two processes at most."""

import multiprocessing
import shlex
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from draftd.client.local import LocalClient
from draftd.config import DraftingSettings
from draftd.native import Segment
from draftd.replay import ReplayOptions, ReplayResult, replay_file
from draftd.replay.sessions import corpus_segment, in_process
from draftd.replay.traces import workload_name

PROCESSES = 2

Result = TypeVar("Result")


@dataclass(frozen=True)
class Replay:
    """One file, and everything that its figures depend on."""

    trace: Path
    options: ReplayOptions = field(default_factory=ReplayOptions)
    corpora: tuple[Path, ...] = ()
    in_flight: bool = True
    priors: Path | None = None  # None: without

    @property
    def workload(self) -> str:
        return workload_name(self.trace)

    def words(self) -> list[str]:
        """What `draftd replay` takes behind the files to do the same."""
        options, defaults = self.options, ReplayOptions()
        words: list[str] = []
        for name in ReplayOptions.__slots__:
            value = getattr(options, name)
            if value != getattr(defaults, name):
                words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
        for corpus in self.corpora:
            words += ["--corpus", str(corpus)]
        if not self.in_flight:
            words.append("--no-in-flight")
        words += ["--priors", str(self.priors or "none")]
        return words


def command(replays: Iterable[Replay]) -> str:
    """The commands that do these replays: one for all that differ in nothing but the file."""
    alike: dict[str, list[str]] = {}
    for replay in replays:
        alike.setdefault(shlex.join(replay.words()), []).append(str(replay.trace))
    return " && ".join(f"draftd replay {shlex.join(files)} {words}" for words, files in alike.items())


def engine_for(replay: Replay) -> AbstractContextManager[LocalClient]:
    """A client of a new engine that is as the replay wants it."""
    segments = {path.stem: _segment(path) for path in replay.corpora}
    drafting = DraftingSettings(priors=replay.priors or "none")
    return in_process(replay.workload, segments, in_flight=replay.in_flight, drafting=drafting)


def measure(replay: Replay) -> ReplayResult:
    """Does it, in this process."""
    with engine_for(replay) as client:
        return replay_file(replay.trace, client, replay.options)


@cache
def _segment(path: Path) -> Segment:
    return corpus_segment(path)


class Replays:
    """Does replays and keeps what came of them. What is wanted early is done while other results are worked with."""

    def __init__(self) -> None:
        # Spawned: a forked process would have the locks of the threads, but not the threads.
        self._pool = ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))
        self._results: dict[tuple[Callable[[Replay], Any], Replay], Future[Any]] = {}

    def want(self, replays: Iterable[Replay], way: Callable[[Replay], Any] = measure) -> None:
        """`way` is what does a replay; a function of a module."""
        for replay in replays:
            if (way, replay) not in self._results:
                self._results[way, replay] = self._pool.submit(way, replay)

    def of(self, replays: Iterable[Replay], way: Callable[[Replay], Result] = measure) -> list[Result]:
        """What came of them, in the same order."""
        wanted = list(replays)
        self.want(wanted, way)
        return [self._results[way, replay].result() for replay in wanted]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
