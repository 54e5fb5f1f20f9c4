"""Only what is committed counts for a draft, not how it came to be: pauses, repeats, rollbacks, slices of indexing."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from draftd import native
from tests.property.rows import CommitRow, TailRow, packed, step

AMPLE = 1 << 30
NODES = 16
HISTORY = [[0, 1, 2, 3, 0, 1, 2, 0], [3, 2, 1, 0, 3, 2], [0, 0, 1, 0, 0, 1]]

tokens = st.lists(st.integers(0, 3), max_size=8)


@dataclass(frozen=True)
class Turn:
    """A commit that begins `back` tokens before the end of the output."""

    back: int
    tokens: list[int]
    max_nodes: int
    repeated: bool


turns = st.builds(Turn, st.sampled_from([0, 0, 0, 1, 3]), tokens, st.sampled_from([0, NODES]), st.booleans())


def engine_with_a_history() -> native.Engine:
    engine = native.Engine(600.0, AMPLE, AMPLE, 64, indexing_thread=False)
    engine.create_namespace()
    for document in HISTORY:
        open_request(engine, 0, [], document, share=0)
        engine.close(1, packed("<u4", [0]), packed("<u4", [1]), 0.0, 0)
        engine.index_slice(AMPLE)
    return engine


def open_request(engine: native.Engine, request: int, prompt: list[int], output: list[int], *, share: int = 3) -> None:
    engine.open(
        verifier=1,
        request=request,
        epoch=1,
        namespace=0,
        label="",
        vocabulary_size=0,
        prompt=packed("<i4", prompt),
        output=packed("<i4", output),
        stop_ids=b"",
        max_new_tokens=None,
        chain=False,
        max_nodes=0,
        share=share,
        group="",
        hide_history=False,
        corpora=None,
        now=0.0,
    )


def commit(engine: native.Engine, row: CommitRow) -> TailRow:
    (tail,) = step(engine, native.StepColumns, 1, [row], now=0.0)
    return tail


def draft(engine: native.Engine, request: int, length: int) -> TailRow:
    return commit(engine, CommitRow(request, 1, length, (), NODES))


@given(prompt=tokens, turns=st.lists(turns, max_size=8))
def test_a_draft_equals_that_of_a_fresh_request_with_the_same_tokens(prompt: list[int], turns: list[Turn]) -> None:
    engine = engine_with_a_history()
    open_request(engine, 1, prompt, [])
    text = list(prompt)
    for turn in turns:
        start = max(len(text) - turn.back, len(prompt))
        told = [*text[:start], *turn.tokens]
        text = text if text[: len(told)] == told else told
        row = CommitRow(1, 1, start, turn.tokens, turn.max_nodes)
        for _ in range(1 + turn.repeated):
            assert commit(engine, row).base == len(text)
    open_request(engine, 2, text[: len(prompt)], text[len(prompt) :])
    assert draft(engine, 1, len(text)) == draft(engine, 2, len(text))


@given(prompt=tokens, unit=st.lists(st.integers(0, 3), min_size=3, max_size=30))
def test_drafting_off_for_100_steps_changes_no_later_draft(prompt: list[int], unit: list[int]) -> None:
    engine = engine_with_a_history()
    output = (unit * 100)[:100]
    open_request(engine, 1, prompt, [])
    open_request(engine, 2, prompt, [])
    for place, token in enumerate(output):
        commit(engine, CommitRow(1, 1, len(prompt) + place, [token], NODES))
        commit(engine, CommitRow(2, 1, len(prompt) + place, [token], 0))
    length = len(prompt) + len(output)
    assert draft(engine, 1, length) == draft(engine, 2, length)


@given(unit=st.lists(st.integers(0, 3), min_size=3, max_size=9), end=tokens, slices=st.lists(st.integers(1, 200)))
def test_a_prompt_indexed_in_slices_drafts_like_one_indexed_at_once(
    unit: list[int], end: list[int], slices: list[int]
) -> None:
    engine = engine_with_a_history()
    prompt = unit * 100 + end
    open_request(engine, 1, prompt, [])
    for most in slices:
        engine.index_slice(most)
        draft(engine, 1, len(prompt))
    engine.index_slice(AMPLE)
    open_request(engine, 2, prompt, [])
    engine.index_slice(AMPLE)
    assert draft(engine, 1, len(prompt)) == draft(engine, 2, len(prompt))
