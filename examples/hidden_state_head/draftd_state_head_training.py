"""Trains the head for a target, from a recording of what that target said.

    python -m draftd_state_head_training TARGET RECORDING --out head.npz [--steps 300]

TARGET is a directory of a causal language model, RECORDING a file as `draftd replay` reads it, whose outputs are the
target's. The target reads each text once; from its states the head learns what comes two to five tokens on.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.progress import Progress, track
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForCausalLM

from draftd.replay.traces import RecordedRequest, read_trace

DEPTH = 4  # tokens that are learned to be foreseen from one state, as many as the source drafts
POSITIONS = 256  # of a step
RATE = 1e-3


class Lessons(NamedTuple):
    """Position by position: the state there, and the tokens that followed it."""

    states: Tensor  # [positions, width]
    tokens: Tensor  # [positions, DEPTH + 1]


def lessons_from(target: Any, recorded: Sequence[RecordedRequest]) -> Lessons:
    """Of the outputs alone. Raises ValueError where they are too short to learn from."""
    states, tokens = [], []
    for request in track(recorded, description="the target reads"):
        text = torch.from_numpy(np.concatenate((request.prompt, request.output))).long()
        first, end = len(request.prompt) - 1, len(text) - DEPTH - 1
        if first >= end:
            continue
        with torch.inference_mode():
            said = target(input_ids=text[None], output_hidden_states=True, logits_to_keep=1)
        states.append(said.hidden_states[-1][0, first:end].float().clone())
        tokens.append(text.unfold(0, DEPTH + 1, 1)[first + 1 : end + 1])
    if not states:
        raise ValueError(f"no output has more than {DEPTH} tokens: there is nothing to learn from")
    return Lessons(torch.cat(states), torch.cat(tokens))


class Head(nn.Module):
    """What draftd_state_head computes, as torch does it."""

    def __init__(self, embeddings: Tensor) -> None:
        """`embeddings`: [tokens that the head knows, width]."""
        super().__init__()
        width = embeddings.shape[1]
        self.embeddings = embeddings
        self.inner = nn.Linear(2 * width, 2 * width, bias=False)
        self.outer = nn.Linear(2 * width, width, bias=False)
        nn.init.zeros_(self.outer.weight)  # at first the state stays what it is

    def forward(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The guessed states of the tokens, and scores of what follows; `tokens` are places in the embeddings."""
        together = self.inner(torch.cat((states, self.embeddings[tokens]), dim=1))
        states = states + self.outer(functional.silu(together))
        return states, states @ self.embeddings.T


def learn(head: Head, lessons: Lessons, steps: int, seed: int) -> Iterator[float]:
    """The loss after each step. `lessons.tokens`: places in the embeddings."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(head.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        batch = torch.randint(len(lessons.states), (POSITIONS,), generator=random)
        states, tokens, loss = lessons.states[batch], lessons.tokens[batch], torch.zeros(())
        for depth in range(DEPTH):
            states, scores = head(states, tokens[:, depth])
            loss = loss + functional.cross_entropy(scores, tokens[:, depth + 1]) / DEPTH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.item()


def train(target: Any, recorded: Sequence[RecordedRequest], file: Path, steps: int, seed: int = 0) -> None:
    """Writes the head. It knows the tokens of the outputs, and drafts no others: that keeps it small and fast."""
    torch.manual_seed(seed)
    ids = np.unique(np.concatenate([request.output for request in recorded]))
    embeddings = target.get_output_embeddings().weight.detach()[ids].float()
    lessons = lessons_from(target, recorded)
    places = Lessons(lessons.states, torch.searchsorted(torch.from_numpy(ids).long(), lessons.tokens))
    head = Head(embeddings)
    with Progress() as shown:
        task = shown.add_task("the head learns", total=steps)
        for loss in learn(head, places, steps, seed):
            shown.update(task, advance=1, description=f"the head learns, loss {loss:.2f}")
    weights = {"inner": head.inner.weight.T, "outer": head.outer.weight.T, "embeddings": embeddings}
    columns = {name: np.ascontiguousarray(weight.detach().numpy(), np.float32) for name, weight in weights.items()}
    np.savez(file, ids=ids.astype(np.int32), **columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the file to write, head.npz")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    if not options.target.is_dir():
        parser.error(f"{options.target} is no directory of a model")
    if options.out.suffix != ".npz" or not options.out.parent.is_dir():
        parser.error(f"--out {options.out}: give a name that ends in .npz, in a folder that is there")
    try:
        recorded = list(read_trace(options.recording))
        train(AutoModelForCausalLM.from_pretrained(options.target), recorded, options.out, options.steps)
    except ValueError as error:  # also one of the recording, whose message names the file
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
