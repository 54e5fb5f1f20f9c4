"""A batch of recorded requests, decoded beside what the rule says of it."""

import random
from itertools import islice

import numpy as np
import torch
from torch.distributed import ProcessGroup

from bench.text import trace_documents
from draftd.demo.sample import SAMPLE
from draftd.kernels.delivery import Arrival
from draftd.kernels.texts import Rule
from draftd.sources.ngram_gpu import DeviceNgram
from tests.engines.kernels.oracle import CPU, Row, drafted, padding

ROWS, WIDTH, STEPS = 4, 400, 60
RULE = Rule(2, 6, 5, pad_with_last=True)

Drafts = list[list[list[int]]]  # by step and row


def decode(seed: int, group: ProcessGroup | None = None) -> tuple[Drafts, Drafts]:
    """What was drafted, and what the rule says. Rows emit 0 to 6 tokens a step, and change hands now and then; windows
    come by `seed`, the rest is always the same."""
    chance, arrival_chance = random.Random(0), random.Random(seed)
    texts = [document[:WIDTH].tolist() for document in islice(trace_documents(SAMPLE), 12)]
    source = DeviceNgram(ROWS, WIDTH, RULE, CPU, group)
    rows = [Row([]) for _ in range(ROWS)]
    left: list[list[int]] = [[] for _ in rows]
    openings = [0] * ROWS
    drafts, expected = [], []
    for step in range(STEPS):
        place = step % 15
        if place < ROWS:
            text = chance.choice(texts)
            openings[place] = source.open(place, text[:100])
            rows[place], left[place] = Row(text[:100]), text[100:]
        emitted = [tokens[: chance.randrange(7)] for tokens in left]
        padded = [tokens + [0] * (6 - len(tokens)) for tokens in emitted]
        source.append(torch.tensor(padded), torch.tensor([len(tokens) for tokens in emitted]))
        for row, rest, tokens in zip(rows, left, emitted, strict=True):
            row.text.extend(tokens)
            del rest[: len(tokens)]
        arrivals = []
        for place in arrival_chance.sample(range(ROWS), arrival_chance.randrange(3)):
            context = arrival_chance.randrange(1, 9)  # tokens that the window agrees with
            window = [*rows[place].text[-context:], *arrival_chance.choice(texts)[:40]]
            rows[place].arrivals.append([window])
            arrivals.append(Arrival(place, openings[place], [np.array(window, np.int32)]))
        if arrivals:
            assert source.post(arrivals)
        tokens, counts = source.propose()
        of_rule = [drafted(row, RULE) for row in rows]
        assert group is not None or counts.tolist() == [len(draft) for draft in of_rule]
        drafts.append(tokens.tolist())
        expected.append(
            [draft + [padding(row, RULE)] * (5 - len(draft)) for row, draft in zip(rows, of_rule, strict=True)]
        )
    return drafts, expected
