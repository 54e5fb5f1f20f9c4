"""What it saves to go on from the index of the turn before: tokens indexed, and CPU time of openings and indexing.

    python -m bench.turns [--traces DIR]

Every recorded request is opened, with its output, indexed and closed, in the order of the recording: once going on from
what is kept of ended requests, once with that deleted after each.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from bench.text import add_traces_option
from draftd.demo.sample import trace_files
from draftd.native import DraftPolicy, Engine
from draftd.observe.terminal import console
from draftd.replay.traces import RecordedRequest, read_trace, workload_name
from draftd.wire import Share

AMPLE = 1 << 33  # bytes


@dataclass(frozen=True)
class Work:
    """Tokens indexed, and CPU seconds of the one thread that opens and indexes."""

    tokens: int
    seconds: float


def indexing_work(requests: Sequence[RecordedRequest], *, keeps: bool) -> Work:
    engine = Engine(600.0, AMPLE, 1 << 28, 64, indexing_thread=False)
    namespace = engine.create_namespace()
    begun = time.thread_time()
    for epoch, request in enumerate(requests, start=1):
        open_and_close(engine, namespace, request, epoch)
        if not keeps:
            engine.forget_requests([namespace], None, [])
    seconds = time.thread_time() - begun
    tokens = sum(len(request.prompt) + len(request.output) for request in requests)
    return Work(tokens - engine.statistics()["taken_over_tokens"], seconds)


def open_and_close(engine: Engine, namespace: int, request: RecordedRequest, epoch: int) -> None:
    engine.open(
        verifier=1,
        request=1,
        epoch=epoch,
        namespace=namespace,
        label=request.id,
        vocabulary_size=0,
        prompt=request.prompt.tobytes(),
        output=request.output.tobytes(),
        stop_ids=b"",
        max_new_tokens=None,
        chain=False,
        max_nodes=0,
        policy=DraftPolicy(),
        share=Share.NOTHING,
        group="",
        hide_history=True,
        corpora=None,
        now=0.0,
    )
    engine.index_slice(AMPLE)
    engine.close(1, np.uint32(1).tobytes(), np.uint32(epoch).tobytes(), 0.0, 0)
    engine.index_slice(AMPLE)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    table = Table(
        "recording", "requests", "tokens indexed anew", "going on", "of it", "CPU ms anew", "going on", "of it"
    )
    for path in trace_files(parser.parse_args(arguments).traces):
        requests = list(read_trace(path))
        anew, going_on = (indexing_work(requests, keeps=keeps) for keeps in (False, True))
        table.add_row(
            workload_name(path),
            f"{len(requests):,}",
            f"{anew.tokens:,}",
            f"{going_on.tokens:,}",
            f"{going_on.tokens / anew.tokens:.1%}",
            f"{anew.seconds * 1e3:.0f}",
            f"{going_on.seconds * 1e3:.0f}",
            f"{going_on.seconds / anew.seconds:.1%}",
        )
    console(width=120).print(table)


if __name__ == "__main__":
    main()
