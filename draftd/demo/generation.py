"""`draftd demo --model`: a model generates with drafts of a server and without, and what came of it."""

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from draftd.client import Client, Namespace
from draftd.demo.interruption import interruptible
from draftd.demo.prompts import PROMPTS
from draftd.demo.server import DemoError, Server, running_server
from draftd.demo.smollm2 import load_smollm2
from draftd.demo.streams import DEADLINE, TENANT
from draftd.demo.token_text import TokenText
from draftd.replay.table import report_console
from draftd.verify.drafts import ClientDrafts
from draftd.verify.rules import Greedy
from draftd.verify.verifier import Step, Verifier

NODES = 8  # of a draft
LEAST_SURVIVAL = 0.25  # of a node: a CPU pays nearly full price for each token that it verifies
TOKENS, QUICK_TOKENS = 128, 32  # of each output, at most

ACCEPTED, OWN = "green", "default"


@dataclass
class Figures:
    """What one way to generate took."""

    outputs: list[list[int]] = field(default_factory=list)
    passes: int = 0
    accepted: int = 0
    drafted: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(map(len, self.outputs))


def generate(*, quick: bool = False) -> None:
    """Runs the demo and prints text and figures. Raises DemoError, whose text is one line for a person; in any case
    nothing is left running."""
    console = report_console()
    with interruptible():
        # What loading says on standard error is progress, of which the command's first line has told.
        with redirect_stderr(io.StringIO()):
            model, tokenizer = load_smollm2()
        prompts = [_as_chat(tokenizer, prompt) for prompt in PROMPTS]
        most_tokens = QUICK_TOKENS if quick else TOKENS
        drafted = _with_drafts(model, tokenizer, prompts, most_tokens, console)
        plain = Figures()
        with console.status("the same without drafts"):
            for prompt in prompts:
                for _ in _steps(Verifier(model, Greedy()), tokenizer, prompt, most_tokens, plain):
                    pass
    if drafted.outputs != plain.outputs:
        raise DemoError("the text with drafts is not the text without; please report it, with the versions of torch")
    console.print(_table(drafted, plain))
    console.print("The text is the same without drafts, token for token.", style="bold")


def _as_chat(tokenizer: Any, prompt: str) -> list[int]:
    messages = [{"role": "user", "content": prompt}]
    ids: list[int] = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    return ids


def _with_drafts(
    model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], most_tokens: int, console: Console
) -> Figures:
    figures = Figures()
    namespace = Namespace(tenant=TENANT, model="smollm2")
    with (
        running_server() as server,
        Client(server.endpoint, namespace, deadline=DEADLINE, vocabulary_size=model.config.vocab_size) as client,
    ):
        console.print(f"draftd serves verifiers at {server.endpoint}, people at {server.http}")
        console.print(Text.assemble("Accepted drafts are ", ("green", ACCEPTED), ", the model's own tokens are not."))
        verifier = Verifier(model, Greedy(), ClientDrafts(client, NODES, min_survival=LEAST_SURVIVAL))
        for question, prompt in zip(PROMPTS, prompts, strict=True):
            console.rule(Text(question.splitlines()[0]), align="left", style="dim")
            steps = _steps(verifier, tokenizer, prompt, most_tokens, figures)
            _show(steps, TokenText(partial(tokenizer.decode, skip_special_tokens=True)), server, console)
    return figures


def _steps(
    verifier: Verifier, tokenizer: Any, prompt: Sequence[int], most_tokens: int, figures: Figures
) -> Iterator[Step]:
    """The steps of one request, counted in the figures as they come."""
    output: list[int] = []
    figures.outputs.append(output)
    request_id = str(len(figures.outputs))
    started = time.perf_counter()
    for step in verifier.generate({request_id: prompt}, most_tokens, stop_ids=[tokenizer.eos_token_id]):
        figures.seconds += time.perf_counter() - started
        output += step.tokens
        figures.passes += 1
        figures.accepted += step.accepted
        figures.drafted += step.drafted
        yield step
        started = time.perf_counter()


def _show(steps: Iterator[Step], text: TokenText, server: Server, console: Console) -> None:
    for step in steps:
        server.check()
        for place, token in enumerate(step.tokens):
            console.print(Text(text.add(token), ACCEPTED if place < step.accepted else OWN), end="", soft_wrap=True)
    console.print()


def _table(drafted: Figures, plain: Figures) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for column in ("tokens", "forward\npasses", "tokens\nper pass", "drafted", "accepted", "seconds"):
        table.add_column(column, justify="right", style="bold" if "per" in column else None)
    for name, figures in (("draftd", drafted), ("no drafts", plain)):
        table.add_row(
            name,
            f"{figures.tokens}",
            f"{figures.passes}",
            f"{figures.tokens / figures.passes:.2f}",
            f"{figures.drafted}",
            f"{figures.accepted}",
            f"{figures.seconds:.1f}",
        )
    return table
