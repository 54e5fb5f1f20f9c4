"""Indexes, a draft model, and both in one tree: tokens a step, for the same most nodes, with the reference verifier.

    build/engines/env/bin/python -m bench.hybrid --traces DIR [--recordings NAME ...] [--requests 8] [--tokens 96]

The target is SmolLM2-135M, greedy. The drafter is a copy of it whose weights are rounded to a few bits: it is as
large, so that nothing here says what it costs, but often wrong, as a drafter is. Prompts are ends of recorded ones;
as many others of the same recording go before, which are not counted: a server that has just begun knows neither how
good its draft model is nor where that helps.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress
from rich.table import Table

from bench.engine_prompts import prompts_of
from bench.text import add_traces_option
from draftd.client.local import LocalClient
from draftd.config import EngineSettings, SourceSettings
from draftd.demo.sample import trace_files
from draftd.demo.smollm2 import load_smollm2
from draftd.engine import Engine
from draftd.observe import facts
from draftd.observe.terminal import console
from draftd.replay.traces import workload_name
from draftd.sources import REGISTRY
from draftd.verify.drafts import ClientDrafts, DraftSource
from draftd.verify.model_drafts import ModelDrafts
from draftd.verify.rules import Greedy
from draftd.verify.verifier import Verifier

RECORDINGS = ("code_edit_swe", "math_gsm8k_multi", "specbench_mtbench", "rl_code_humaneval", "chat_open_70b")
SOURCE = "draft_model"
PROMPT_TOKENS = 256
SEED = 1


@dataclass
class Figures:
    """Of one set of prompts, drafted for in one way."""

    steps: int = 0
    emitted: int = 0
    verified: int = 0
    asked: float = 0.0  # rows that the draft model was asked for
    nodes_before: float = 0.0  # of the draft model, before the first that count

    @property
    def tokens_per_step(self) -> float:
        return self.emitted / self.steps


def rounded(model: Any, bits: int) -> Any:
    """The model with each row of its matrices rounded to so many bits, in place."""
    steps = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 2:
                unit = weights.abs().amax(dim=1, keepdim=True) / steps
                weights.copy_((weights / unit).round() * unit)
    return model


def generate(target: Any, prompts: Mapping[str, Sequence[int]], tokens: int, drafts: DraftSource) -> Figures:
    """All requests of a half at once, to their end; figures are of the second."""
    verifier, names = Verifier(target, Greedy(), drafts), list(prompts)
    for _ in verifier.generate({name: prompts[name] for name in names[::2]}, tokens):
        pass
    figures = Figures(nodes_before=nodes_of_source())
    for step in verifier.generate({name: prompts[name] for name in names[1::2]}, tokens):
        figures.steps += 1
        figures.emitted += len(step.tokens)
        figures.verified += step.drafted
    return figures


def from_engine(
    target: Any, prompts: Mapping[str, Sequence[int]], given: argparse.Namespace, *sources: SourceSettings
) -> Figures:
    engine = Engine(EngineSettings(), sources=sources)
    try:
        with LocalClient(engine, vocabulary_size=target.config.vocab_size) as client:
            figures = generate(target, prompts, given.tokens, ClientDrafts(client, given.nodes))
    finally:
        engine.close()
    figures.asked = (nodes_of_source() - figures.nodes_before) / given.nodes
    return figures


def nodes_of_source() -> float:
    return facts.REGISTRY.get_sample_value("draftd_source_nodes_total", {"source": SOURCE}) or 0.0


def from_model(
    target: Any, prompts: Mapping[str, Sequence[int]], given: argparse.Namespace, options: dict[str, Any]
) -> Figures:
    source: Any = REGISTRY.find(SOURCE)(**options)
    try:
        figures = generate(target, prompts, given.tokens, ModelDrafts(source, given.nodes, target.config.vocab_size))
    finally:
        source.close()
    figures.asked = figures.steps
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--recordings", nargs="*", default=RECORDINGS, help="whose prompts")
    parser.add_argument("--requests", type=int, default=8, help="of each recording, all at once")
    parser.add_argument("--tokens", type=int, default=96, help="of each output")
    parser.add_argument("--nodes", type=int, default=8, help="most of each draft")
    parser.add_argument("--least-gain", type=float, default=0.25, help="accepted tokens that asking has to bring")
    parser.add_argument("--bits", type=int, default=5, help="to which the drafter's weights are rounded")
    given = parser.parse_args(arguments)
    recordings = {workload_name(path): path for path in trace_files(given.traces)}
    table = Table("prompts", "indexes", "draft model", "both", "of the better", "asked for", "verified nodes")
    with tempfile.TemporaryDirectory() as folder, Progress(console=console(width=120), transient=True) as progress:
        target, tokenizer = load_smollm2()
        tokenizer.save_pretrained(folder)
        worse, _ = load_smollm2()
        rounded(worse, given.bits).save_pretrained(folder)
        options = {"model": folder, "longest": given.nodes}
        source = SourceSettings(name=SOURCE, options=options, milliseconds=10_000, least_gain=given.least_gain)
        for name in progress.track(given.recordings):
            ids = prompts_of(recordings[name], Path(folder, "tokenizer.json"), 2 * given.requests, PROMPT_TOKENS, SEED)
            prompts = {f"r{number}": prompt for number, prompt in enumerate(ids)}
            indexes = from_engine(target, prompts, given)
            model = from_model(target, prompts, given, options)
            both = from_engine(target, prompts, given, source)
            ways = (indexes, model, both)
            better = max(indexes.tokens_per_step, model.tokens_per_step)
            table.add_row(
                name,
                *(f"{way.tokens_per_step:.3f}" for way in ways),
                f"{both.tokens_per_step / better:.3f}",
                f"{both.asked / both.steps:.0%} of rows",
                " / ".join(f"{way.verified / way.steps:.2f}" for way in ways),
            )
    console(width=120).print(table)


if __name__ == "__main__":
    main()
