"""What every draft source promises: tests for whoever says how one is made."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from ml_dtypes import bfloat16

from draftd.sources import Batch, HiddenStates, Need, Outcome, Proposals, Source
from draftd.sources.checks import require_answer

Make = Callable[[], Source]
Row = tuple[int, int, list[int], int]  # request, start, tokens, nodes


STATE_WIDTH = 8  # of sources that read hidden states


def hidden_states(rows: Sequence[Row]) -> HiddenStates:
    """As a target has them that looks at positions alone: of the token before a row's part, and of all but its last."""
    spans = [range(max(0, start - 1), start + len(tokens) - 1) for _, start, tokens, _ in rows]
    positions = [position for span in spans for position in span]
    return HiddenStates(
        np.array([span.start for span in spans], np.uint32),
        np.cumsum([len(span) for span in spans], dtype=np.uint32),
        np.sin(np.outer(positions, np.arange(1, STATE_WIDTH + 1))).astype(bfloat16),
    )


def ask(source: Source, rows: Sequence[Row]) -> Proposals:
    """An answer that was checked."""
    budget = np.array([nodes for _, _, _, nodes in rows], np.uint32)
    batch = Batch(
        np.array([request for request, _, _, _ in rows], np.uint64),
        np.array([start for _, start, _, _ in rows], np.uint32),
        np.cumsum([len(tokens) for _, _, tokens, _ in rows], dtype=np.uint32),
        np.array([token for _, _, tokens, _ in rows for token in tokens], np.int32),
        hidden_states(rows) if Need.HIDDEN_STATES in source.nature.needs else None,
    )
    return require_answer(source.propose(batch, budget), source.nature, budget)


def drafts(source: Source, rows: Sequence[Row]) -> list[list[int]]:
    """The tokens of each row."""
    proposals = ask(source, rows)
    ends = [0, *proposals.node_end.tolist()]
    return [proposals.tokens[first:end].tolist() for first, end in itertools.pairwise(ends)]


def ends(requests: Sequence[int]) -> Outcome:
    none = np.array([], np.uint16)
    return Outcome(np.array([], np.uint64), none, none, np.array(requests, np.uint64))


def texts(seed: int, count: int) -> list[list[int]]:
    """Of few different tokens, so that they repeat themselves."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 4, random.integers(1, 60)).tolist() for _ in range(count)]


class SourcePromises:
    """A class of tests that inherits from this has a fixture `make`: Make."""

    @pytest.fixture
    def source(self, make: Make) -> Iterator[Source]:
        source = make()
        yield source
        source.close()

    def test_answers_keep_to_the_question_while_texts_grow(self, source: Source) -> None:
        for growing in range(0, 60, 7):
            rows = [
                (number, min(growing, len(text)), text[growing : growing + 7], number % 9)
                for number, text in enumerate(texts(1, 20))
            ]
            ask(source, rows)

    def test_some_text_that_repeats_itself_is_drafted_from(self, source: Source) -> None:
        assert any(drafts(source, [(number, 0, text, 8) for number, text in enumerate(texts(2, 20))]))

    def test_a_batch_without_rows_and_rows_without_nodes_are_answered(self, source: Source) -> None:
        assert drafts(source, []) == []
        assert drafts(source, [(1, 0, [1, 2, 1, 2], 0), (2, 0, [], 4)])[0] == []

    def test_no_row_depends_on_the_others(self, make: Make, source: Source) -> None:
        rows = [(number, 0, text, 8) for number, text in enumerate(texts(3, 12))]
        together = drafts(source, rows)
        for row, draft in zip(rows, together, strict=True):
            alone = make()
            assert drafts(alone, [row]) == [draft]
            alone.close()

    def test_how_a_text_came_makes_no_difference(self, make: Make, source: Source) -> None:
        for number, text in enumerate(texts(4, 12)):
            middle = len(text) // 2
            drafts(source, [(number, 0, [*text[:middle], 3, 3, 3], 8)])
            piecewise = drafts(source, [(number, middle, text[middle:], 8)])  # three tokens were taken back
            at_once = make()
            assert piecewise == drafts(at_once, [(number, 0, text, 8)])
            assert drafts(source, [(number, 0, text, 8)]) == piecewise  # shown once more
            at_once.close()

    def test_what_ended_is_forgotten_and_its_memory_with_it(self, source: Source) -> None:
        held = []
        for life in range(4):
            requests = range(50 * life, 50 * life + 50)
            drafts(source, [(number, 0, text, 8) for number, text in zip(requests, texts(5, 50), strict=True)])
            source.observe(ends(requests))
            held.append(source.memory())
        assert held[1] == held[2] == held[3]

    def test_outcomes_of_proposals_are_taken(self, source: Source) -> None:
        rows = [(number, 0, text, 8) for number, text in enumerate(texts(6, 30))]
        counts = np.array([len(draft) for draft in drafts(source, rows)], np.uint16)
        requests = np.arange(len(rows), dtype=np.uint64)[counts > 0]
        nothing_ended = np.array([], np.uint64)
        source.observe(Outcome(requests, counts[counts > 0], np.minimum(counts[counts > 0], 1), nothing_ended))
        ask(source, [(number, len(text), [1, 2], 8) for number, _, text, _ in rows])
