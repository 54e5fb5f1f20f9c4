"""Learns what namespaces start with from recordings; of these here, `draftd/priors/shipped`.

    python -m bench.train_priors --traces FOLDER --out FILE [--without [SOURCE ...]] [--cache FOLDER]

Every recording has an equal say, and none much: what a namespace learns itself soon counts for more. First each is
replayed alone, for how often which evidence was right. Then all of them, one behind the other, for the weights that mix
the evidence. Of both, less than was measured is kept: what holds for all recordings holds for others too, the rest does
not. The shipped file is made without chats, as is the default, for these recordings' licence allows no commercial use.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from bench.text import add_traces_option
from draftd import native
from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.config import DraftingSettings, EngineSettings
from draftd.demo.sample import trace_files
from draftd.engine import Engine
from draftd.priors import pack_priors
from draftd.reference import cells
from draftd.replay import ReplayError, ReplayOptions, TraceError, replay_file
from draftd.replay.traces import workload_name

NOT_SHIPPED = ("chat",)

REQUESTS = 50  # of each recording: from there on a namespace knows better itself
TRIALS_OF_EACH = 64  # most that one recording says of a cell
TRIALS = 4  # most that all of them say
EPOCHS = 2
STRENGTH = 0.5  # of what weights learned
SETTLED = 10**9  # lessons after which weights move at their slowest
LESSONS = 3000  # that a namespace begins with: its weights move slower than those of one that knows nothing

# Recordings of one source are of one kind of traffic: they begin alike, or are listed.
SOURCES = {
    "swe": ("agent_swe", "code_edit_swe"),
    "writing": ("rl_writing_",),
    "chat": ("chat_",),
    "math": ("math_",),
    "specbench": ("specbench_",),
}

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Seen:
    """How often the evidence of each cell was looked at in a recording, and how often it was right."""

    hits: Floats
    trials: Floats

    def at_most(self, trials: float) -> "Seen":
        factor = np.minimum(1.0, trials / np.maximum(self.trials, 1.0)).astype(np.float32)
        return Seen(self.hits * factor, self.trials * factor)

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(self.hits + other.hits, self.trials + other.trials)


def source_of(workload: str) -> str:
    """The name of a recording's source; its own where it has none in common with others."""
    return next((source for source, names in SOURCES.items() if workload.startswith(names)), workload)


def priors_without(traces: Path, workload: str, cache: Path) -> Path:
    """Priors from the recordings of all sources but one workload's; made where `cache` does not have them.

    A cache is good for one version of draftd and one folder of recordings."""
    source = source_of(workload)
    path = cache / f"without_{source}.priors"
    if not path.exists():
        files = [file for file in trace_files(traces) if source_of(workload_name(file)) != source]
        cache.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack_priors(train(files, cache).save()))
    return path


def train(files: Sequence[Path], cache: Path) -> native.Model:
    """`cache`: of what each file says by itself."""
    start = with_cells(
        native.Model(), reduce(Seen.__add__, [seen_in(file, cache).at_most(TRIALS_OF_EACH) for file in files])
    )
    order = random.Random(1)
    last: list[native.Model] = []
    model = start
    for _ in range(EPOCHS):
        last.clear()
        for file in order.sample(files, len(files)):
            model = with_weights(start, [taught(model, file)], 1.0, SETTLED)
            last.append(model)
    return with_weights(start, last, STRENGTH, LESSONS)


def seen_in(file: Path, cache: Path) -> Seen:
    kept = cache / f"{workload_name(file)}.npz"
    if not kept.exists():
        start, model = native.Model(), taught(native.Model(), file)
        trials = np.maximum(model.trials - start.trials, 0)
        np.savez(kept, hits=np.clip(model.hits - start.hits, 0, trials), trials=trials)
    with np.load(kept) as arrays:
        return Seen(arrays["hits"], arrays["trials"])


def taught(model: native.Model, file: Path) -> native.Model:
    """What becomes of a model in a namespace that sees the first requests of a file."""
    with TemporaryDirectory() as folder:
        priors = Path(folder) / "priors"
        priors.write_bytes(pack_priors(model.save()))
        engine = Engine(EngineSettings(), DraftingSettings(priors=priors))
    namespace = Namespace(model=workload_name(file))
    client = LocalClient(engine, namespace, verifier="training", deadline=30.0)
    replay_file(file, client, ReplayOptions(requests=REQUESTS))
    learned = native.Model.load(engine.learned(namespace))
    engine.close()
    return learned


def with_cells(model: native.Model, seen: Seen) -> native.Model:
    """What was seen on top of a model's own counts. Not for prompts: what they are like differs most."""
    general = seen.at_most(TRIALS)
    for first, end in prompt_cells():
        general.hits[first:end] = general.trials[first:end] = 0.0
    return native.Model(
        hits=model.hits + general.hits,
        trials=model.trials + general.trials,
        agreement=model.agreement,
        standing=model.standing,
        correction=model.correction,
        lessons=SETTLED,
    )


def with_weights(start: native.Model, learned: Sequence[native.Model], strength: float, lessons: int) -> native.Model:
    """A model with so much of the way to the mean of others' weights."""

    def part(name: str) -> Floats:
        before: Floats = getattr(start, name)
        mean = np.mean([getattr(model, name) for model in learned], axis=0, dtype=np.float64)
        return (before + strength * (mean - before)).astype(np.float32)

    return native.Model(
        hits=start.hits,
        trials=start.trials,
        agreement=part("agreement"),
        standing=part("standing"),
        correction=part("correction"),
        lessons=lessons,
    )


def prompt_cells() -> list[tuple[int, int]]:
    """Ranges of cells of evidence from prompts, which is the first of the origins."""
    assert cells.Origin.PROMPT == 0
    origins = len(cells.Origin)
    known, missed = cells.MISSED - cells.KNOWN, cells.PAIRED - cells.MISSED
    return [(cells.KNOWN, cells.KNOWN + known // origins), (cells.MISSED, cells.MISSED + missed // origins)]


def _learned(traces: Path, without: Sequence[str], cache: Path | None) -> tuple[bytes, list[Path]]:
    """Packed priors, and of which recordings. Raises OSError, ReplayError or TraceError."""
    files = [file for file in trace_files(traces) if source_of(workload_name(file)) not in without]
    if not files:
        raise FileNotFoundError(f"{traces}: no recording is left without {', '.join(without)}")
    with TemporaryDirectory() as folder:
        kept = cache or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        return pack_priors(train(files, kept).save()), files


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--without", nargs="*", default=NOT_SHIPPED, metavar="SOURCE", help="sources to leave out")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--cache", type=Path, help="folder for what each recording says, kept for the next time")
    options = parser.parse_args(arguments)
    try:
        content, files = _learned(options.traces, options.without, options.cache)
        options.out.write_bytes(content)
    except (OSError, ReplayError, TraceError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    print(f"{options.out}: {len(content)} bytes, learned from {', '.join(map(workload_name, files))}")


if __name__ == "__main__":
    main()
