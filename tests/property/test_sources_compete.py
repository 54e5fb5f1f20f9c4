"""Sources compete for nodes by survival: what has nothing to say takes nothing from what has."""

import random

import pytest

from draftd import native
from tests.property.rows import CommitRow, packed, step
from tests.segments import sealed

VOCABULARY = 2_000
NODES = 8
AMPLE = 1 << 30

Text = list[int]


def natural_text(seed: int, length: int) -> Text:
    """Tokens with the frequencies of natural text: the n-th most frequent about 1/n as often as the first."""
    weights = [1 / (rank + 1) for rank in range(VOCABULARY)]
    return random.Random(seed).choices(range(VOCABULARY), weights, k=length)


def edited(text: Text, seed: int, every: int) -> Text:
    """The text with one token in `every` replaced."""
    change = random.Random(seed)
    return [change.randrange(VOCABULARY) if change.randrange(every) == 0 else token for token in text]


def emitted_per_step(corpora: list[Text], output: Text) -> float:
    """Decodes `output` with drafts from the corpora alone; every draft is verified whole."""
    engine = native.Engine(600.0, AMPLE, AMPLE, 64, indexing_thread=False)
    engine.create_namespace()
    for number, corpus in enumerate(corpora):
        engine.publish_corpus(0, number, [sealed([corpus])])
    engine.open(
        verifier=1,
        request=1,
        epoch=1,
        namespace=0,
        label="",
        vocabulary_size=0,
        prompt=b"",
        output=packed("<i4", output[:1]),
        stop_ids=b"",
        max_new_tokens=None,
        chain=False,
        max_nodes=0,
        share=3,
        group="",
        hide_history=False,
        corpora=None,
        now=0.0,
    )
    committed, steps, fresh = 1, 0, output[1:1]
    while committed < len(output):
        row = CommitRow(1, 1, committed - len(fresh), fresh, NODES)
        (tail,) = step(engine, native.StepColumns, 1, [row], now=0.0)
        node, accepted = -1, 0
        while True:
            wanted = (node, output[committed + accepted]) if committed + accepted < len(output) else None
            children = list(zip(tail.parents, tail.tokens, strict=True))
            if wanted not in children:
                break
            node, accepted = children.index(wanted), accepted + 1
        fresh = output[committed : committed + accepted + 1]
        committed += len(fresh)
        steps += 1
    return (len(output) - 1) / steps


@pytest.mark.parametrize("every", [8, 30])
def test_four_unrelated_corpora_leave_95_percent_of_the_accepted_length(every: int) -> None:
    matching = natural_text(seed=1, length=4_000)
    unrelated = [natural_text(seed=seed, length=4_000) for seed in range(2, 6)]
    output = edited(matching[:2_000], seed=7, every=every)
    alone = emitted_per_step([matching], output)
    beside = emitted_per_step([matching, *unrelated], output)
    assert alone > 2.0
    assert beside - 1 >= 0.95 * (alone - 1)
