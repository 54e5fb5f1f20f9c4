"""Trains a small block drafter on SmolLM2-135M's own outputs, and says what it is worth on others.

    python -m bench.train_block_drafter --out DIR [--questions 224] [--tokens 160] [--steps 600]
        [--markov-head vanilla | gated | recurrent] [--no-confidence-head] [--outputs FILE] [--seed 0]

Runs in what `make engines` sets up, on processors alone. SmolLM2 answers the first questions of the bundled corpus,
greedily; of the answers eight tenths are learned from, one tenth is for the confidence head, and one tenth is only
replayed in the end, beside n-gram lookup. Answers are kept in --outputs (default: DIR/outputs.jsonl.gz), and taken from
there the next time. The same answers, steps and seed give the same drafter.
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

from bench.block_training import learn_confidence, learn_tokens, lessons_from, untrained_drafter
from bench.target_outputs import chat_prompt, greedy_outputs, questions, write_recording
from draftd.blocks.checkpoint import save_checkpoint
from draftd.blocks.drafter import BlockDrafter
from draftd.demo.smollm2 import load_smollm2
from draftd.observe import terminal
from draftd.replay.budgets import FixedBudget
from draftd.replay.result import ReplayResult
from draftd.replay.runner import replay
from draftd.replay.source_drafter import SourceDrafter
from draftd.replay.table import report_console
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.sources import GuardedSource, Ngram, Source
from draftd.sources.block_model import BlockModel, OneHotBlockModel

QUESTIONS, TOKENS, STEPS = 224, 160, 600
LEAST_QUESTIONS = 10
CONFIDENCE_BATCHES = 30
BUDGET = 7  # nodes of a step in the final replay: a block
AT_ONCE = 8  # requests of a replay


def record_outputs(model: object, tokenizer: object, file: Path, count: int, most_tokens: int, shown: Progress) -> None:
    prompts = [chat_prompt(tokenizer, question) for question in questions()[:count]]
    outputs = greedy_outputs(model, tokenizer, prompts, most_tokens)
    write_recording(file, shown.track(outputs, total=len(prompts), description="SmolLM2 answers"))


def parts(recorded: Sequence[RecordedRequest]) -> tuple[Sequence[RecordedRequest], ...]:
    """What is learned from, what the confidence head is fitted to, what is replayed. Answers of one token are left out:
    nothing can be drafted in them."""
    requests = [request for request in recorded if len(request.output) > 1]
    tenth = max(1, len(requests) // 10)
    return requests[: -2 * tenth], requests[-2 * tenth : -tenth], requests[-tenth:]


def trained_drafter(
    embeddings: Tensor,
    lessons: Sequence[RecordedRequest],
    others: Sequence[RecordedRequest],
    options: argparse.Namespace,
    shown: Progress,
) -> BlockDrafter:
    """`others`: for the confidence head, if there is one."""
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    drafter = untrained_drafter(embeddings, lessons, options.markov_head, confidence=options.confidence_head)
    task = shown.add_task("the drafter learns", total=options.steps)
    for loss in learn_tokens(drafter, lessons_from(drafter, lessons, random), options.steps):
        shown.update(task, advance=1, description=f"the drafter learns, loss {loss:.2f}")
    if options.confidence_head:
        learn_confidence(drafter, lessons_from(drafter, others, random), CONFIDENCE_BATCHES)
    return drafter


def replayed(name: str, source: Source, requests: Sequence[RecordedRequest]) -> ReplayResult:
    """Of a source by itself."""
    result = ReplayResult(name)
    with SourceDrafter(GuardedSource(name, source)) as drafter:
        replay(requests, drafter, FixedBudget(BUDGET), result, AT_ONCE)
    return result


def report(results: Sequence[ReplayResult], title: str) -> Table:
    """Of each source what a step accepts, and how often it accepts at least so many tokens."""
    table = Table(title=title, title_justify="left")
    table.add_column("source")
    deepest = range(1, BUDGET + 1)
    columns = ("steps", "accepted\na step", "emitted\na step", *(f"{depth} or\nmore" for depth in deepest))
    for column in (*columns, "calibration\nerror", "AUC"):
        table.add_column(column, justify="right")
    for result in results:
        accepted = result.positions.accepted_steps + [0] * BUDGET
        trust = result.calibration if result.calibration.nodes else None
        table.add_row(
            result.workload,
            f"{result.steps}",
            f"{result.accepted / result.steps:.3f}",
            f"{result.emitted_per_step:.3f}",
            *(f"{accepted[depth - 1] / result.steps:.1%}" for depth in deepest),
            f"{trust.error:.3f}" if trust else "",
            f"{trust.auc:.3f}" if trust and trust.auc is not None else "",
        )
    return table


def train(options: argparse.Namespace) -> list[ReplayResult]:
    """Writes the checkpoint, and replays the answers that it has not seen: the drafter, then n-gram lookup."""
    options.out.mkdir(parents=True, exist_ok=True)
    outputs = options.outputs or options.out / "outputs.jsonl.gz"
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal.console(stderr=True)) as shown:
        model, tokenizer = load_smollm2()
        if not outputs.exists():
            record_outputs(model, tokenizer, outputs, options.questions, options.tokens, shown)
        lessons, others, held_out = parts(list(islice(read_trace(outputs), options.questions)))
        embeddings = model.model.embed_tokens.weight.detach()
        save_checkpoint(trained_drafter(embeddings, lessons, others, options, shown), options.out)
    block = BlockModel if options.confidence_head else OneHotBlockModel
    return [replayed("block", block(options.out), held_out), replayed("ngram", Ngram(), held_out)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="directory of the checkpoint")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="that are answered, at most 1000")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of an answer, at most")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training")
    parser.add_argument("--markov-head", choices=["vanilla", "gated", "recurrent"], default="vanilla")
    parser.add_argument("--no-confidence-head", dest="confidence_head", action="store_false")
    parser.add_argument("--outputs", type=Path, help="recording of the answers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.questions < LEAST_QUESTIONS:
        parser.error(f"--questions {options.questions}: give at least {LEAST_QUESTIONS}, for a tenth is only replayed")
    results = train(options)
    title = f"{results[0].requests} answers that were not learned from, {BUDGET} nodes a step"
    report_console().print(report(results, title))


if __name__ == "__main__":
    main()
