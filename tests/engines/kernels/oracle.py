"""The rule of docs/ngram-gpu.md in plain Python, situations to try it in, and how they come onto a device."""

from dataclasses import dataclass, field

import numpy as np
import torch
from hypothesis import strategies as st

from draftd.kernels.delivery import Arrival, Mailbox, put_into_slots
from draftd.kernels.texts import RING, DeviceTexts, Rule

CPU = torch.device("cpu")
GARBAGE = 2**31 - 2  # what memory holds that nobody is meant to read


@dataclass(frozen=True)
class Row:
    """What one request is matched against."""

    text: list[int]
    arrivals: list[list[list[int]]] = field(default_factory=list)  # windows that came together


def drafted(row: Row, rule: Rule) -> list[int]:
    """What the rule says, position by position."""
    windows = [window for arrival in row.arrivals[-RING:] for window in arrival]
    best, best_source, best_end = 0, row.text, 0
    for is_own in (True, False):
        for source in [row.text] if is_own else windows:
            for end in range(1, len(source)):
                length = _common_suffix(source[:end], row.text, rule.max_n)
                is_better = length > best or (
                    length == best and rule.prefer == "latest" and (best_source is row.text) == is_own
                )
                if length >= rule.min_n and is_better:
                    best, best_source, best_end = length, source, end
    if best == 0:
        return []
    following = best_source[best_end:]
    if best_source is row.text:
        following = following * rule.most_tokens  # the own text goes on in the draft itself
    return following[: rule.most_tokens]


def padding(row: Row, rule: Rule) -> int:
    if not rule.pad_with_last:
        return -1
    return row.text[-1] if row.text else 0


def _common_suffix(one: list[int], other: list[int], most: int) -> int:
    length = 0
    while length < min(most, len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return length


def on_device(rows: list[Row], width: int, device: torch.device = CPU) -> DeviceTexts:
    """With garbage wherever nothing is meant to be read. All rows are open."""
    texts = DeviceTexts.empty(len(rows), width, device)
    for place in (texts.tokens, texts.lengths, texts.tapes):
        place.fill_(GARBAGE)
    for place, row in enumerate(rows):
        texts.tokens[place, : len(row.text)] = torch.tensor(row.text, dtype=torch.int32)
        texts.lengths[place] = len(row.text)
        texts.openings[place] = place + 1
    mailbox = Mailbox(len(rows), device)
    for number in range(max((len(row.arrivals) for row in rows), default=0)):
        assert mailbox.post(
            [
                Arrival(place, place + 1, [np.array(window, np.int32) for window in row.arrivals[number]])
                for place, row in enumerate(rows)
                if number < len(row.arrivals)
            ]
        )
        with mailbox.taken() as delivery:
            assert delivery is not None
            put_into_slots(texts, delivery)
    return texts


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    min_n = draw(st.integers(1, 4))
    return Rule(
        min_n=min_n,
        max_n=draw(st.integers(min_n, min_n + 5)),
        most_tokens=draw(st.integers(1, 9)),
        prefer=draw(st.sampled_from(["earliest", "latest"])),
        pad_with_last=draw(st.booleans()),
    )


_TOKENS = st.integers(0, 2)
_WINDOWS = st.lists(st.lists(_TOKENS, max_size=12), max_size=3)
ROWS = st.builds(Row, text=st.lists(_TOKENS, max_size=40), arrivals=st.lists(_WINDOWS, max_size=RING + 3))
BATCHES = st.lists(ROWS, min_size=1, max_size=4)
