"""The draft model drafts what plain forward passes over the whole text give, whatever happened to texts before."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from draftd.models.paged_cache import PagedModel
from draftd.sources import REGISTRY, Batch, Need, Proposals, SourceError
from draftd.sources.draft_model import DraftModel
from tests.contract.source_promises import Make, Row, SourcePromises, ask, drafts, ends
from tests.engines.sources.small_model import LONGEST_TEXT, VOCABULARY, Node, saved, wanted
from tests.faults.process import until

ROUNDING = 1e-5  # of float32, in a product of a few probabilities


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def model(directory: Path) -> Any:
    return saved(directory)


@pytest.fixture
def made(directory: Path, model: Any) -> Iterator[Any]:
    """Makes sources of the model, and closes them."""
    sources: list[DraftModel] = []

    def make(**options: Any) -> DraftModel:
        sources.append(DraftModel(model=str(directory), **{"kv_tokens": 2048} | options))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


@pytest.mark.parametrize("children", [1, 3])
class TestPromises(SourcePromises):
    @pytest.fixture
    def make(self, directory: Path, model: Any, children: int) -> Make:
        options = {"model": str(directory), "children": children, "kv_tokens": 4096}
        return partial(REGISTRY.make, "draft_model", options, frozenset({Need.TOKENS}))


def trees(proposals: Proposals) -> list[list[Node]]:
    """Of each row the nodes, likeliest first."""
    assert proposals.parents is not None
    assert proposals.survival is not None
    rows = []
    first = 0
    for end in proposals.node_end.tolist():
        paths: list[tuple[int, ...]] = []
        for token, parent in zip(proposals.tokens[first:end], proposals.parents[first:end], strict=True):
            paths.append((*(paths[parent] if parent >= 0 else ()), int(token)))
        survival = proposals.survival[first:end].tolist()
        rows.append(sorted(zip(paths, survival, strict=True), key=lambda node: -node[1]))
        first = end
    return rows


def assert_same(found: list[Node], right: list[Node]) -> None:
    assert [path for path, _ in found] == [path for path, _ in right]
    assert np.allclose([survival for _, survival in found], [survival for _, survival in right], atol=ROUNDING)


def text(seed: int, length: int) -> list[int]:
    return random.Random(seed).choices(range(VOCABULARY), k=length)


@pytest.mark.parametrize("children", [1, 3])
@pytest.mark.parametrize("kv_tokens", [2048, 96])
def test_drafts_are_those_of_plain_passes_whatever_happens_to_texts(
    made: Any, model: Any, children: int, kv_tokens: int
) -> None:
    """Texts go on as drafted and otherwise, are taken back, are not asked for; with 96 they lose what is kept."""
    chance = random.Random(children)
    source = made(children=children, kv_tokens=kv_tokens)
    texts = {number: text(number, 3 + 5 * number) for number in range(6)}
    shown = dict.fromkeys(texts, 0)
    for _ in range(20):
        asked = chance.sample(sorted(texts), 2)
        budgets = [chance.choice([0, 1, 4, 7]) for _ in asked]
        answer = trees(
            ask(
                source,
                [(it, shown[it], texts[it][shown[it] :], most) for it, most in zip(asked, budgets, strict=True)],
            )
        )
        for number, most, found in zip(asked, budgets, answer, strict=True):
            assert_same(found, wanted(model, texts[number], most, 4, children))
            shown[number] = len(texts[number])
            accepted = list(chance.choice(found)[0]) if found and chance.random() < 0.7 else []
            texts[number] += [*accepted, chance.randrange(VOCABULARY)]
            if chance.random() < 0.2:
                del texts[number][-chance.randrange(1, 4) :]
                shown[number] = min(shown[number], len(texts[number]))
                texts[number].append(chance.randrange(VOCABULARY))


def test_a_text_that_is_shown_again_is_drafted_for_alike(made: Any, model: Any) -> None:
    source = made()
    again = text(1, 20)
    right = wanted(model, again, 4, 4, 1)
    for start in (0, 20, 0, 13):
        assert_same(trees(ask(source, [(1, start, again[start:], 4)]))[0], right)


def test_a_long_text_is_read_between_calls_and_then_drafted_for(made: Any, model: Any) -> None:
    source = made(catch_up=16)
    long, short = text(1, 200), text(2, 10)
    empty, drafted = trees(ask(source, [(1, 0, long, 4), (2, 0, short, 4)]))
    assert not empty
    assert_same(drafted, wanted(model, short, 4, 4, 1))
    found: list[Node] = []

    def is_drafted() -> bool:
        found[:] = trees(ask(source, [(1, 200, [], 4)]))[0]
        return bool(found)

    until(is_drafted)
    assert_same(found, wanted(model, long, 4, 4, 1))


def test_a_text_that_ends_while_it_is_read_is_forgotten(made: Any, model: Any) -> None:
    source = made(catch_up=16)
    for number in range(5):
        ask(source, [(number, 0, text(number, 400), 4)])
        source.observe(ends([number]))
    assert_same(trees(ask(source, [(9, 0, text(9, 12), 4)]))[0], wanted(model, text(9, 12), 4, 4, 1))


def test_beyond_the_models_longest_text_nothing_is_drafted(made: Any) -> None:
    source = made(catch_up=LONGEST_TEXT)
    fits, too_long = text(1, LONGEST_TEXT - 4), text(2, LONGEST_TEXT - 3)
    assert [len(row) for row in drafts(source, [(1, 0, fits, 4), (2, 0, too_long, 4)])] == [4, 0]
    assert [len(row) for row in drafts(source, [(2, len(too_long), [], 3)])] == [3]


def test_rows_that_find_no_memory_beside_the_others_of_their_call_are_empty_and_no_others(
    made: Any, model: Any
) -> None:
    source = made(kv_tokens=96)
    texts = [text(number, 40) for number in range(4)]
    answer = trees(ask(source, [(number, 0, it, 4) for number, it in enumerate(texts)]))
    assert [bool(found) for found in answer] == [True, True, False, False]
    for found, it in zip(answer[:2], texts[:2], strict=True):
        assert_same(found, wanted(model, it, 4, 4, 1))


def test_a_pass_that_fails_costs_its_call_and_no_memory(made: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = made(kv_tokens=96)
    rows: list[Row] = [(number, 0, text(number, 40), 4) for number in range(2)]
    plain = PagedModel.run
    for passes_before in (0, 1, 3):
        left = [passes_before]

        def run(self: PagedModel, asked: Any, keep: int, left: list[int] = left) -> torch.Tensor:
            if not left[0]:
                raise RuntimeError("out of memory")
            left[0] -= 1
            return plain(self, asked, keep)

        with monkeypatch.context() as patched:
            patched.setattr(PagedModel, "run", run)
            with pytest.raises(RuntimeError, match="out of memory"):
                ask(source, rows)
    for found, (_, _, it, _) in zip(trees(ask(source, rows)), rows, strict=True):
        assert_same(found, wanted(model, it, 4, 4, 1))


def test_instances_share_a_model_and_know_nothing_of_each_others_requests(made: Any, model: Any) -> None:
    alone = made()
    whole = alone.memory()
    other = made()
    assert alone.memory() == other.memory() == whole // 2
    mine, yours = text(1, 20), text(2, 20)
    ask(alone, [(1, 0, mine, 4)])
    assert_same(trees(ask(other, [(1, 0, yours, 4)]))[0], wanted(model, yours, 4, 4, 1))
    other.observe(ends([1]))
    assert_same(trees(ask(alone, [(1, 20, [], 4)]))[0], wanted(model, mine, 4, 4, 1))


def test_calls_of_several_threads_are_answered_each_with_its_own(made: Any, model: Any) -> None:
    sources = [made() for _ in range(4)]
    texts = [text(number, 10 + number) for number in range(40)]

    def draft(number: int) -> list[list[Node]]:
        rows: list[Row] = [(it, 0, texts[10 * number + it], 4) for it in range(10)]
        return trees(ask(sources[number], rows))

    with ThreadPoolExecutor(4) as threads:
        found = [row for rows in threads.map(draft, range(4)) for row in rows]
    for row, it in zip(found, texts, strict=True):
        assert_same(row, wanted(model, it, 4, 4, 1))


def test_ids_that_the_model_has_not_are_left_out_of_its_text(made: Any, model: Any) -> None:
    known = text(1, 12)
    assert_same(
        trees(ask(made(), [(1, 0, [*known[:5], VOCABULARY, 10**9, *known[5:]], 4)]))[0], wanted(model, known, 4, 4, 1)
    )


def drawn(source: DraftModel, it: list[int], budget: int) -> tuple[Proposals, np.ndarray]:
    batch = Batch(
        np.array([1], np.uint64), np.array([0], np.uint32), np.array([len(it)], np.uint32), np.array(it, np.int32)
    )
    proposals, (distributions,) = source.propose_drawn(batch, np.array([budget], np.uint32), VOCABULARY + 3)
    return proposals, distributions


def test_drawn_drafts_come_with_what_they_were_drawn_from(made: Any, model: Any) -> None:
    it = text(1, 12)
    proposals, distributions = drawn(made(temperature=2.0, seed=5), it, 3)
    tokens = proposals.tokens.tolist()
    assert distributions.shape == (4, VOCABULARY + 3)
    assert not distributions[:, VOCABULARY:].any()
    assert not distributions[3].any()
    with torch.inference_mode():
        logits = model(torch.tensor([it + tokens])).logits[0, len(it) - 1 : -1].double()
    assert np.abs(distributions[:3, :VOCABULARY] - (logits / 2.0).softmax(-1).numpy()).max() < ROUNDING
    survival = np.cumprod([distributions[place, token] for place, token in enumerate(tokens)])
    assert np.allclose(proposals.survival, survival, atol=ROUNDING)


def test_the_seed_decides_what_is_drawn(directory: Path, model: Any) -> None:
    def tokens(seed: int) -> list[int]:
        source = DraftModel(model=str(directory), kv_tokens=512, temperature=3.0, longest=8, seed=seed)
        proposals, _ = drawn(source, text(1, 12), 8)
        source.close()
        return proposals.tokens.tolist()

    assert tokens(1) == tokens(1) != tokens(2)


def test_greedy_drafts_have_no_probabilities(made: Any) -> None:
    with pytest.raises(ValueError, match="temperature is 0: drafts are not drawn"):
        drawn(made(), text(1, 12), 3)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"longest": 0}, "longest is 0; give at least 1"),
        ({"temperature": -1.0}, "temperature is -1.0; give 0"),
        ({"temperature": 1.0, "children": 2}, "drawn drafts are chains"),
        ({"kv_tokens": 60}, "kv_tokens is 60; one request alone takes 68"),
        ({"model": "/nowhere"}, "does not start: .*/nowhere"),
    ],
)
def test_options_that_can_not_be_meant_are_refused(directory: Path, model: Any, options: Any, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        REGISTRY.make("draft_model", {"model": str(directory)} | options, frozenset({Need.TOKENS}))
