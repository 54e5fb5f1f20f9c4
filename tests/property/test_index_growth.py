"""The index grows linearly with its text, whatever the text: counted in states and edges, not in seconds."""

import random

import numpy as np
import pytest

from draftd.native import Index

TOKENS = 20_000
MOST_STATES_PER_TOKEN = 2
MOST_EDGES_PER_TOKEN = 3
MOST_BYTES_PER_TOKEN = 80
"""Far above real text (30): binary text branches everywhere."""


def fibonacci_word(length: int) -> list[int]:
    shorter, longer = [0], [0, 1]
    while len(longer) < length:
        shorter, longer = longer, longer + shorter
    return longer[:length]


TEXTS = {
    "aaaa": [7] * TOKENS,
    "abab": [3, 4] * (TOKENS // 2),
    "fibonacci": fibonacci_word(TOKENS),
    "random binary": random.Random(1).choices([0, 1], k=TOKENS),
    "distinct": list(range(TOKENS)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_index_is_linear_in_its_text(name: str) -> None:
    text = np.array(TEXTS[name], dtype=np.int32)
    index = Index()
    for half in (text[: TOKENS // 2], text[TOKENS // 2 :]):
        index.append(half)
        assert index.states <= MOST_STATES_PER_TOKEN * index.tokens + 2
        assert index.edges <= MOST_EDGES_PER_TOKEN * index.tokens
        assert index.memory_size() <= MOST_BYTES_PER_TOKEN * index.tokens
    index.check_integrity()
