"""vLLM with its own n-gram lookup, with its suffix decoding and with draftd: the same engine, prompts and draft length.

    python -m bench.engines --arctic DIR [--traces DIR] [--markdown FILE] [--json FILE]

Needs what `make engines` sets up: vLLM on the CPU, and SmolLM2-135M in float32. The model goes on greedily with
the ends of recorded prompts, one at a time and eight at once. Every run has an engine process of its own, and draftd's
a server of its own, so none knows at its start what another found. Takes seven minutes where nothing else runs. Ends
with status 1 if a proposer changes the output or a target is missed; only as many prompts and output tokens as by
default have targets.

Suffix decoding wants ArcticInference: DIR is its source archive, unpacked, with the suffix extension built for the
engines' Python as `python -m bench.arctic --help` says. Without --arctic it is not measured.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table as TerminalTable

from bench.echo import running_echo
from bench.engine_figures import (
    BATCH,
    DRAFTD,
    LONG_NGRAM,
    NGRAM,
    NONE,
    SUFFIX,
    Comparison,
    Run,
    Table,
)
from bench.engine_prompts import prompts_of
from bench.engine_side import CONTEXT, Job, Outcome, Step
from bench.text import add_traces_option
from draftd.config import ADAPTER_PREFIX
from draftd.demo.server import running_server
from draftd.observe import terminal

ROOT = Path(__file__).parent.parent
ENGINES_PYTHON = ROOT / "build/engines/env/bin/python"
WORKLOADS = ("code_edit_swe", "agent_swe", "agent_tau_airline")
CHAIN = 8  # drafted tokens, for all
SPECULATIVE: dict[str, dict[str, Any]] = {
    LONG_NGRAM: {"method": "ngram"},  # whose default is n-grams of 5
    NGRAM: {"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 5},
    SUFFIX: {"method": "suffix"},
    DRAFTD: {"method": "custom_class", "model": "draftd.adapters.vllm.DraftdProposer"},
}
PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 8, 512, 128  # of each workload; of each request


@dataclass(frozen=True)
class Engines:
    """Runs engines. `python` is of their environment, `arctic` where ArcticInference is."""

    python: Path
    arctic: Path | None

    def model(self) -> Path:
        """The model's directory, made if it is not there."""
        code = "from tests.engines.model import model_directory; print(model_directory())"
        return Path(self._run(["-c", code]).split()[-1])

    def run(self, job: Job, endpoint: str | None = None) -> Outcome:
        """Does a job in a process of its own. `endpoint` is draftd's."""
        with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder:
            asked, answered = Path(folder, "job.json"), Path(folder, "outcome.json")
            asked.write_text(json.dumps(asdict(job)))
            draftd = {f"{ADAPTER_PREFIX}ENDPOINT": endpoint} if endpoint else {}
            self._run(["-m", "bench.engine_side", str(asked), str(answered)], **draftd)
            fields = json.loads(answered.read_text())
        return Outcome(**{**fields, "steps": [Step(**step) for step in fields["steps"]]})

    def _run(self, words: Sequence[str], **settings: str) -> str:
        """What it prints. The environment says nothing of draftd but the settings."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ADAPTER_PREFIX)}
        environment = {
            **inherited,
            "PYTHONPATH": os.pathsep.join(str(path) for path in (ROOT, self.arctic) if path),
            "OMP_NUM_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",  # more would spin between the steps of the n-gram proposer
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_LOGGING_LEVEL": "ERROR",
            **settings,
        }
        done = subprocess.run([self.python, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{done.stderr}\nan engine ended with status {done.returncode}: see above")
        return done.stdout


@contextmanager
def drafter(proposer: str) -> Iterator[tuple[str | None, str | None]]:
    """The endpoints of what a proposer needs beside it, as long as the context lasts: draftd, and an echo."""
    if proposer != DRAFTD:
        yield None, None
        return
    with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder:
        echo = f"ipc://{folder}/echo.sock"
        with running_server() as server, running_echo(echo):
            yield server.endpoint, echo


def measure(options: argparse.Namespace) -> Comparison:
    engines = Engines(options.python, options.arctic)
    model = engines.model()
    workloads: list[str] = []
    prompts: list[list[int]] = []
    for name in options.workloads:
        trace, tokenizer = options.traces / f"{name}.jsonl.gz", model / "tokenizer.json"
        prompts += prompts_of(trace, tokenizer, options.prompts, options.prompt_tokens, options.seed)
        workloads += [name] * (len(prompts) - len(workloads))
    proposers = [proposer for proposer in options.proposers if proposer != SUFFIX or options.arctic]
    runs = []
    for proposer, at_once in [(NONE, max(options.at_once)), *itertools.product(proposers, options.at_once)]:
        chain = {**SPECULATIVE[proposer], "num_speculative_tokens": CHAIN} if proposer != NONE else None
        with drafter(proposer) as (endpoint, echo):
            job = Job(str(model), prompts, options.output_tokens, at_once, chain, echo)
            runs.append(Run(proposer, at_once, workloads, engines.run(job, endpoint)))
        print(f"{runs[-1]}: {runs[-1].tokens_per_step():.3f} tokens per step", file=sys.stderr)
    return Comparison(runs)


def markdown(tables: Sequence[Table]) -> str:
    lines = []
    for heading, *rows in tables:
        lines += [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def in_terminal(title: str, cells: Table) -> TerminalTable:
    heading, *rows = cells
    shown = TerminalTable(*heading, title=title, title_justify="left")
    for row in rows:
        shown.add_row(*row)
    return shown


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arctic", type=Path, help="ArcticInference, built: see above")
    parser.add_argument("--python", type=Path, default=ENGINES_PYTHON, help="of the engines' environment")
    add_traces_option(parser)
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, help="recordings that the prompts are from")
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="of each recording")
    parser.add_argument("--seed", type=int, default=0, help="by which they are chosen")
    parser.add_argument("--prompt-tokens", type=int, default=PROMPT_TOKENS, help="most of a prompt: its end")
    parser.add_argument("--output-tokens", type=int, default=OUTPUT_TOKENS, help="most of an output")
    parser.add_argument("--proposers", nargs="+", choices=SPECULATIVE, default=[*SPECULATIVE])
    parser.add_argument("--at-once", nargs="+", type=int, default=[1, BATCH], help="requests that the engine runs")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")
    options = parser.parse_args(arguments)
    if not options.python.exists():
        parser.error(f"{options.python} is not there; make it with `make engines`")
    if options.prompt_tokens + options.output_tokens > CONTEXT:
        parser.error(f"{options.prompt_tokens} and {options.output_tokens} tokens are more than the {CONTEXT} that fit")

    comparison = measure(options)
    tables = {
        f"Tokens per step, at most {CHAIN} drafted": comparison.tokens_table(),
        "All prompts": comparison.steps_table(),
    }
    console = terminal.console(width=150)
    for title, cells in tables.items():
        console.print(in_terminal(title, cells))
    console.print(comparison.round_trip(), highlight=False)
    if options.markdown:
        text = f"{markdown([*tables.values()])}\n{comparison.round_trip()}\n"
        options.markdown.write_text(text, encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([asdict(run) for run in comparison.runs]) + "\n", encoding="utf-8")
    has_targets = options.prompts >= PROMPTS and options.output_tokens >= OUTPUT_TOKENS
    missed = [*comparison.wrong_outputs(), *(comparison.missed_targets() if has_targets else [])]
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
