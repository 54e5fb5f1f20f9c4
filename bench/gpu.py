"""The matcher on a CUDA device: checked against its twin, timed against the memory's bandwidth and vLLM's own.

    build/engines/env/bin/python -m bench.gpu [--traces DIR] [--json FILE]

Needs torch and triton, which the environment of `make engines` has, and vLLM where it is to be compared with. Rows of
recorded text, 8k to 128k tokens, and short rows in a long matrix. Without a CUDA device nothing is timed: it says so,
and checks the twin on the CPU in a small form. Ends with status 1 if a draft is not what it has to be. Meant to take
less than four minutes.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from bench.text import TokenArray, add_traces_option, trace_documents
from draftd.client.tape import Ring, Window, drafted
from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.delivery import Arrival
from draftd.kernels.texts import RING, Drafts, Rule
from draftd.observe import terminal
from draftd.sources.ngram_gpu import DeviceNgram

RULE = Rule(min_n=2, max_n=5, most_tokens=8)
BATCHES, LENGTHS = (64, 256, 512), (8_192, 32_768, 131_072)
SHORT = 1_024  # tokens of each row of the last cases, in the widest matrix
CHECKED_BATCH, CHECKED_LENGTH = 64, 8_192  # whose twin fits into memory
WARM_UP, TIMES = 5, 50


@dataclass(frozen=True)
class Figures:
    """Microseconds of a step, medians; None: vLLM is not there."""

    batch: int
    width: int
    length: int
    floor: float  # 4 bytes of each token once, at the bandwidth of a copy
    eager: float
    graph: float
    vllm_v1: float | None
    vllm_v2: float | None


def filled(stream: TokenArray, batch: int, width: int, length: int, device: torch.device) -> DeviceNgram:
    """Rows that begin all over the recorded text, each with a ring of windows from elsewhere in it."""
    source = DeviceNgram(batch, width, RULE, device)
    begins = np.linspace(0, len(stream), batch, endpoint=False, dtype=np.int64)
    openings = [source.open(row, stream[(begin + np.arange(length)) % len(stream)]) for row, begin in enumerate(begins)]
    for number in range(RING):
        windows = stream[(begins[:, None] + 997 * (number + 1) + np.arange(64)) % len(stream)]
        arrivals = [Arrival(row, opening, [windows[row]]) for row, opening in enumerate(openings)]
        while not source.post(arrivals):
            source.propose()
        source.propose()
    return source


def wrong_rows(source: DeviceNgram, batch: int) -> int:
    """Rows of the newest drafts that the twin drafts differently."""
    tokens, counts = source.propose()
    expected = Drafts.empty(batch, RULE, tokens.device)
    ngram_torch.draft(source.texts, torch.arange(batch, device=tokens.device), RULE, expected)
    return int(((tokens != expected.tokens).any(1) | (counts != expected.counts)).sum())


def wrong_on_cpu(stream: TokenArray) -> int:
    """Rows of a small batch that the client, which matches in numpy, drafts differently from the twin. It may go on
    where a window ends."""
    rule = Rule(1, 64, RULE.most_tokens)
    source = DeviceNgram(8, 1024, rule, torch.device("cpu"))
    texts = [stream[begin : begin + 900] for begin in range(0, 8 * 900, 900)]
    windows = [stream[begin + 900 : begin + 964] for begin in range(0, 8 * 900, 900)]
    openings = [source.open(row, text) for row, text in enumerate(texts)]
    source.post([Arrival(row, opening, [windows[row]]) for row, opening in enumerate(openings)])
    tokens, counts = (column.numpy() for column in source.propose())
    wrong = 0
    for row, (text, window) in enumerate(zip(texts, windows, strict=True)):
        ring = Ring()
        ring.add([Window(window, None)])
        expected = drafted(text, ring.joined, RULE.most_tokens)
        wrong += not np.array_equal(tokens[row, : counts[row]], expected[: max(1, counts[row])])
    return wrong


def micros(step: Callable[[], Any]) -> float:
    """Median over TIMES, by the device's own clock."""
    for _ in range(WARM_UP):
        step()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(TIMES)]
    for start, end in events:
        start.record()
        step()
        end.record()
    torch.cuda.synchronize()
    return 1000 * float(np.median([start.elapsed_time(end) for start, end in events]))


def bandwidth(device: torch.device) -> float:
    """Bytes a microsecond that a copy reads and writes."""
    room = torch.empty(2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(room)
    return 2 * room.numel() / micros(lambda: target.copy_(room))


def vllm_v1(source: DeviceNgram, batch: int) -> float | None:
    """The windowed comparison of vLLM's V1 runner, not compiled."""
    try:
        from vllm.v1.spec_decode.ngram_proposer_gpu import NgramGPUKernel
    except ImportError:
        return None
    tokens, lengths = source.texts.tokens[:batch], source.texts.lengths[:batch].long()
    form = NgramGPUKernel._find_first_and_extract_all_n_parallel
    return micros(lambda: form(None, tokens, lengths, RULE.min_n, RULE.max_n, RULE.most_tokens))


def vllm_v2(source: DeviceNgram, batch: int) -> float | None:
    """The scan of vLLM's V2 runner."""
    try:
        from vllm.v1.worker.gpu.spec_decode.ngram.speculator import NgramGPUSpeculator
    except ImportError:
        return None
    tokens, lengths = source.texts.tokens[:batch], source.texts.lengths[:batch]
    speculation = SimpleNamespace(
        prompt_lookup_min=RULE.min_n, prompt_lookup_max=RULE.max_n, num_speculative_tokens=RULE.most_tokens
    )
    config = SimpleNamespace(
        speculative_config=speculation,
        scheduler_config=SimpleNamespace(max_num_seqs=batch),
        model_config=SimpleNamespace(max_model_len=tokens.shape[1]),
    )
    states = SimpleNamespace(all_token_ids=SimpleNamespace(gpu=tokens), total_len=SimpleNamespace(gpu=lengths))
    speculator = NgramGPUSpeculator(config, tokens.device, states)
    rows = SimpleNamespace(num_reqs=batch, idx_mapping=torch.arange(batch, device=tokens.device))
    sampled = torch.ones(batch, dtype=torch.int32, device=tokens.device)
    last = torch.zeros((batch, 1), dtype=torch.int64, device=tokens.device)
    unused: tuple[None, ...] = (None,) * 4
    return micros(lambda: speculator.propose(rows, *unused, sampled, sampled, last, last, last, last))


def measured(stream: TokenArray, batch: int, width: int, length: int, speed: float, device: torch.device) -> Figures:
    source = filled(stream, batch, width, length, device)
    rows: Tensor = torch.arange(batch, device=device)
    drafts, launch = Drafts.empty(batch, RULE, device), ngram_triton.Launch.on(device)
    return Figures(
        batch,
        width,
        length,
        floor=4 * batch * (length + source.texts.tapes[0].numel()) / speed,
        eager=micros(lambda: ngram_triton.draft(source.texts, rows, RULE, drafts, launch)),
        graph=micros(source.propose),
        vllm_v1=vllm_v1(source, batch),
        vllm_v2=vllm_v2(source, batch),
    )


def shown(cases: list[Figures], device: torch.device) -> Table:
    table = Table(title=f"Microseconds of a step on {torch.cuda.get_device_name(device)}", title_justify="left")
    headings = ("requests", "matrix", "tokens each", "bandwidth's floor", "eager", "graph", "vLLM V1", "vLLM V2")
    for heading in headings:
        table.add_column(heading, justify="right")
    for case in cases:
        times = (case.floor, case.eager, case.graph, case.vllm_v1, case.vllm_v2)
        shown_times = ["-" if time is None else f"{time:.1f}" for time in times]
        table.add_row(str(case.batch), f"{case.width:,}", f"{case.length:,}", *shown_times)
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)

    stream = np.concatenate(trace_documents(options.traces))
    console = terminal.console(width=110)
    wrong = wrong_on_cpu(stream)
    console.print(f"the twin on the CPU, against the client's matching: {wrong} of 8 rows differ", highlight=False)
    cases: list[Figures] = []
    if torch.cuda.is_available():
        device = torch.device("cuda")
        differing = wrong_rows(filled(stream, CHECKED_BATCH, CHECKED_LENGTH, 8_000, device), CHECKED_BATCH)
        console.print(f"the graph, against its twin: {differing} of {CHECKED_BATCH} rows differ", highlight=False)
        wrong += differing
        speed = bandwidth(device)
        for batch in BATCHES:
            widest = LENGTHS[-1]
            shapes = [*((length, length) for length in LENGTHS), (widest, SHORT)]
            cases += [measured(stream, batch, width, length, speed, device) for width, length in shapes]
        console.print(shown(cases, device))
    else:
        console.print("NO CUDA DEVICE: nothing was timed, and the kernels did not run")
    if options.json:
        figures = {"wrong": wrong, "cases": [asdict(case) for case in cases]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
