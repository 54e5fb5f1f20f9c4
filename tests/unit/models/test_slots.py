"""Which slots a text keeps: what agrees with before, what was drafted and came; the others are everybody's again."""

import numpy as np
import pytest

from draftd.models.slots import NOBODY, KeptText, Slots

COUNT = 20


@pytest.fixture
def slots() -> Slots:
    return Slots(COUNT)


def put(slots: Slots, text: KeptText, start: int, tokens: list[int]) -> None:
    slots.put(text, start, np.array(tokens, np.int64))


def read(slots: Slots, text: KeptText) -> list[int]:
    """As a pass over all that is missing: returns the slots of the text."""
    taken = slots.take(text, text.missing, {text})
    assert taken is not None
    text.slots = np.concatenate((text.slots, taken))
    return text.slots.tolist()


def draft(slots: Slots, text: KeptText, path: list[int]) -> list[int]:
    """A drafted chain: returns its slots."""
    taken = slots.take(text, len(path), {text})
    assert taken is not None
    parent = NOBODY
    for token, slot in zip(path, taken.tolist(), strict=True):
        text.nodes[parent, token] = slot
        parent = slot
    return taken.tolist()


def test_what_was_drafted_and_came_is_kept_and_the_rest_given_back(slots: Slots) -> None:
    text = KeptText()
    put(slots, text, 0, [5, 6, 7])
    known = read(slots, text)
    drafted = draft(slots, text, [8, 9, 10])
    assert slots.free == COUNT - 6
    put(slots, text, 3, [8, 9, 1])
    assert text.slots.tolist() == known + drafted[:2]
    assert text.missing == 1
    assert slots.free == COUNT - 5


def test_the_last_token_is_never_kept_so_that_its_logits_can_be_had(slots: Slots) -> None:
    text = KeptText()
    put(slots, text, 0, [5, 6, 7])
    known = read(slots, text)
    put(slots, text, 3, [])
    assert text.slots.tolist() == known[:2]
    draft(slots, text, [7])
    assert text.missing == 1


@pytest.mark.parametrize(
    ("start", "tokens", "kept"),
    [
        (1, [9, 9], 1),
        (1, [9, 9, 4, 4], 1),
        (0, [5, 6, 7, 8], 3),
        (0, [5, 9, 7], 1),
        (2, [], 1),
        (0, [], 0),
        (0, [5, 6], 1),
    ],
)
def test_a_text_that_differs_keeps_what_is_before(slots: Slots, start: int, tokens: list[int], kept: int) -> None:
    text = KeptText()
    put(slots, text, 0, [5, 6, 7])
    known = read(slots, text)
    draft(slots, text, [4, 4])
    put(slots, text, start, tokens)
    assert text.slots.tolist() == known[:kept]
    assert text.tokens.tolist() == [5, 6, 7][:start] + tokens
    assert slots.free == COUNT - kept


def test_the_texts_longest_unused_lose_theirs(slots: Slots) -> None:
    texts = [KeptText() for _ in range(3)]
    for text in texts:
        put(slots, text, 0, [1, 2, 3, 4, 5])
        read(slots, text)
    assert slots.take(texts[0], 0, {texts[0]}) is not None  # used
    new = KeptText()
    put(slots, new, 0, list(range(8)))
    read(slots, new)
    assert [len(text.slots) for text in texts] == [5, 0, 5]
    assert texts[1].missing == 5


def test_where_it_would_not_help_nobody_loses_anything(slots: Slots) -> None:
    old, running, new = KeptText(), KeptText(), KeptText()
    for text in (old, running):
        put(slots, text, 0, [1, 2, 3, 4, 5])
        read(slots, text)
    assert slots.take(new, 16, {running, new}) is None
    assert [len(old.slots), len(running.slots), slots.free] == [5, 5, COUNT - 10]
    assert slots.take(new, 15, {running, new}) is not None
    assert [len(old.slots), len(running.slots), slots.free] == [0, 5, 0]


def test_no_slot_is_given_twice_and_none_is_nobodys(slots: Slots) -> None:
    texts = [KeptText() for _ in range(4)]
    for text in texts:
        put(slots, text, 0, [1, 2, 3, 4])
        read(slots, text)
        draft(slots, text, [5])
    held = [slot for text in texts for slot in (*text.slots.tolist(), *text.nodes.values())]
    assert sorted(held) == list(range(NOBODY + 1, COUNT + 1))
    for text in texts:
        slots.drop(text)
    assert slots.free == COUNT
