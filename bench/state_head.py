"""Trains the example of a source that reads hidden states, for SmolLM2-135M; and what it is worth beside the indexes.

    build/engines/env/bin/python -m bench.state_head --out DIR [--questions 224] [--tokens 160] [--steps 300]

SmolLM2 answers questions of the bundled corpus, as for bench.train_block_drafter: nine tenths are learned from, to the
others it answers once more, with the reference verifier and a server whose source gets its states. Answers are kept in
--outputs (default: DIR/outputs.jsonl.gz), and taken from there the next time.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.progress import Progress
from rich.table import Table

from bench.train_block_drafter import QUESTIONS, TOKENS, record_outputs
from draftd.client.local import LocalClient
from draftd.config import EngineSettings, SourceSettings
from draftd.demo.smollm2 import load_smollm2
from draftd.engine import Engine
from draftd.observe import facts, terminal
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.sources import REGISTRY
from draftd.verify.drafts import ClientDrafts
from draftd.verify.rules import Greedy
from draftd.verify.verifier import Verifier

sys.path.append(str(Path(__file__).parents[1] / "examples" / "hidden_state_head"))
from draftd_state_head import StateHead
from draftd_state_head_training import train

STEPS = 300
NODES = 4  # of a draft
AT_ONCE = 4  # requests


def generate(target: Any, prompts: Sequence[Sequence[int]], tokens: int, *sources: SourceSettings) -> tuple[int, int]:
    """Tokens that were emitted, and steps."""
    emitted = steps = 0
    engine = Engine(EngineSettings(), sources=sources)
    try:
        with LocalClient(engine, vocabulary_size=target.config.vocab_size) as client:
            verifier = Verifier(target, Greedy(), ClientDrafts(client, NODES))
            for first in range(0, len(prompts), AT_ONCE):
                batch = {f"r{first + place}": prompt for place, prompt in enumerate(prompts[first : first + AT_ONCE])}
                for step in verifier.generate(batch, tokens):
                    emitted, steps = emitted + len(step.tokens), steps + 1
    finally:
        engine.close()
    return emitted, steps


def counted(name: str, **labels: str) -> float:
    return facts.REGISTRY.get_sample_value(name, {"source": "state_head", **labels}) or 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="directory of the head")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="that are answered, at most 1000")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of an answer, at most")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training")
    parser.add_argument("--outputs", type=Path, help="recording of the answers")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    outputs = given.outputs or given.out / "outputs.jsonl.gz"
    target, tokenizer = load_smollm2()
    if not outputs.exists():
        with Progress(console=terminal.console(stderr=True)) as shown:
            record_outputs(target, tokenizer, outputs, given.questions, given.tokens, shown)
    recorded: list[RecordedRequest] = list(islice(read_trace(outputs), given.questions))
    learned = len(recorded) - len(recorded) // 10
    head = given.out / "head.npz"
    train(target, recorded[:learned], head, given.steps)

    REGISTRY.register("state_head")(StateHead)
    source = SourceSettings(name="state_head", options={"checkpoint": str(head), "longest": NODES}, milliseconds=10_000)
    prompts = [request.prompt.tolist() for request in recorded[learned:]]
    table = Table("drafts", "tokens a step", "steps", "answered for", "of a call, ms")
    for name, sources in (("indexes", ()), ("and the head", (source,))):
        emitted, steps = generate(target, prompts, given.tokens, *sources)
        calls, seconds = (
            counted("draftd_source_calls_total", outcome="answered"),
            counted("draftd_source_seconds_total"),
        )
        answered = counted("draftd_source_nodes_total") / NODES / steps
        each = f"{1000 * seconds / calls:.1f}" if calls else ""
        table.add_row(name, f"{emitted / steps:.3f}", f"{steps}", f"{answered:.0%}", each)
    terminal.console().print(table)


if __name__ == "__main__":
    main()
