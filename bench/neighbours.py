"""What an engine feels of what others do at the same server: three other engines, and prompts of 128k tokens.

    python -m bench.neighbours [--traces DIR] [--rounds 8] [--seconds 5] [--rate 50] [--svg FILE] [--json FILE]

First one engine of 32 requests steps RATE times a second, then four of them do. Then 63 requests of one engine step,
and after that with a 64th whose prompt has 128k tokens, every second another. All other prompts have 8k tokens. The two
conditions of a pair take turns, each for some seconds, so that whatever else the machine does hits both; latencies
count from when a step was due, load generator included (bench/load.py). Ends with status 1 if a target is missed.
The targets are for 50 steps a second; where one engine's steps already take most of their 20 ms, a lower rate says what
the neighbours cost, and not what a machine without room for them does.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from rich.progress import track

from bench.arctic import windows
from bench.load import Load, Measured, add_report_options, engines_at, measured_server, report, step_together
from bench.load_engine import OUTPUT, EngineProcess, Phase
from bench.text import TokenArray, add_traces_option, trace_documents
from draftd.observe import terminal

RATE = 50.0  # steps of an engine for each second
ENGINES = Load(engines=4, batch=32, context=8192, rate=RATE, nodes=16)
BATCH = replace(ENGINES, engines=1, batch=63)
LONG_CONTEXT = 131_072  # tokens
LONG_TEXTS = 8

ALONE, TOGETHER = "one engine of 32 requests", "four of them"
PLAIN, LONG_PROMPTS = "63 requests", "and a prompt of 128k tokens every second"
ENGINES_LIMIT = 2.0  # p99 of a step, together over alone
PROMPTS_LIMIT = 1.3

# What steps, and how, by name.
Conditions = Mapping[str, tuple[Sequence[EngineProcess], Phase]]


def beside_engines(documents: Sequence[TokenArray], rounds: int, phase: Phase) -> dict[str, Measured]:
    with measured_server() as (server, process), engines_at(server, ENGINES, documents) as engines:
        conditions = {ALONE: (engines[:1], phase), TOGETHER: (engines, phase)}
        return _in_turns(conditions, rounds, process)


def beside_long_prompts(documents: Sequence[TokenArray], rounds: int, phase: Phase) -> dict[str, Measured]:
    with (
        tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder,
        measured_server() as (server, process),
        engines_at(server, BATCH, documents) as engines,
    ):
        file = Path(folder, "long.npy")
        np.save(file, windows(documents, LONG_TEXTS, LONG_CONTEXT + OUTPUT))
        long_prompts = replace(phase, long_texts=file, long_context=LONG_CONTEXT)
        return _in_turns({PLAIN: (engines, phase), LONG_PROMPTS: (engines, long_prompts)}, rounds, process)


def _in_turns(conditions: Conditions, rounds: int, server: psutil.Process) -> dict[str, Measured]:
    measured = {name: Measured() for name in conditions}
    for _ in track(range(rounds), ", ".join(conditions), console=terminal.console(stderr=True)):
        for name, (engines, phase) in conditions.items():
            measured[name].merge(step_together(engines, phase, server))
    return measured


def slowdown(before: Measured, after: Measured) -> float:
    """Of the p99."""
    return after.percentile(99) / before.percentile(99)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each condition in each round")
    parser.add_argument("--rate", type=float, default=RATE, help="steps of an engine for each second")
    add_report_options(parser)
    options = parser.parse_args(arguments)

    documents = trace_documents(options.traces)
    phase = Phase(options.seconds, options.rate)
    measured = beside_engines(documents, options.rounds, phase)
    measured |= beside_long_prompts(documents, options.rounds, phase)
    report(measured, options.svg, options.json)
    console = terminal.console(width=140)
    missed = False
    for before, after, limit in ((ALONE, TOGETHER, ENGINES_LIMIT), (PLAIN, LONG_PROMPTS, PROMPTS_LIMIT)):
        ratio = slowdown(measured[before], measured[after])
        verdict = "" if ratio <= limit else ": MISSED"
        console.print(f"{after}: p99 is {ratio:.2f}x of {before}, at most {limit:g}x wanted{verdict}", highlight=False)
        missed = missed or ratio > limit
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
