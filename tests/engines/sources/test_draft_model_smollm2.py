"""A real model drafts for itself, and for one that speaks other tokens."""

import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from draftd.sources import Batch
from draftd.sources.draft_model import DraftModel
from draftd.verify.model_drafts import ModelDrafts
from draftd.verify.probabilities import probabilities
from draftd.verify.rules import Dice, Greedy, Proposal, Rejection
from draftd.verify.verifier import Step, Verifier
from tests.contract.source_promises import drafts
from tests.engines.sources.cut_vocabulary import save_permuted_and_cut
from tests.unit.verify.statistics import chi_square

LONGEST = 4
PROMPT_TOKENS = 48
NEW_TOKENS = 65
SAMPLES = 2048
KEPT_TOKENS = 24_000  # of SmolLM2's 49152


@pytest.fixture(scope="module")
def model(model_dir: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


@pytest.fixture(scope="module")
def cut_dir(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cut")
    save_permuted_and_cut(model_dir, directory, KEPT_TOKENS, seed=1)
    return directory


@pytest.fixture
def steps(model: Any, prompts: list[list[int]]) -> Any:
    """Greedy steps with the drafts of a source; those that could not emit a whole draft are left out."""

    def generated(source: DraftModel, requests: int) -> list[Step]:
        verifier = Verifier(model, Greedy(), ModelDrafts(source, LONGEST, model.config.vocab_size))
        batch = {str(number): prompt[-PROMPT_TOKENS:] for number, prompt in enumerate(prompts[:requests])}
        lengths: Counter[str] = Counter()
        whole = []
        for step in verifier.generate(batch, NEW_TOKENS):
            if lengths[step.request_id] + LONGEST < NEW_TOKENS:
                whole.append(step)
            lengths[step.request_id] += len(step.tokens)
        source.close()
        return whole

    return generated


def test_a_model_accepts_all_that_it_drafts_for_itself(model_dir: Path, steps: Any) -> None:
    taken = steps(DraftModel(model=str(model_dir), kv_tokens=2048, longest=LONGEST), requests=8)
    share = sum(step.accepted == LONGEST for step in taken) / len(taken)
    print(f"{share:.4f} of {len(taken)} steps accepted all {LONGEST} drafted tokens")
    assert len(taken) >= 100
    assert share >= 0.99


def drawn(source: DraftModel, prompt: list[int], requests: int, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chains of two for the prompt, without end: int32[2] each, and what they were drawn from."""
    shown = 0
    while True:
        fresh = prompt[shown:]
        batch = Batch(
            np.arange(requests, dtype=np.uint64),
            np.full(requests, shown, np.uint32),
            np.cumsum([len(fresh)] * requests, dtype=np.uint32),
            np.array(fresh * requests, np.int32),
        )
        shown = len(prompt)
        proposals, drawn_from = source.propose_drawn(batch, np.full(requests, 2, np.uint32), width)
        yield from zip(proposals.tokens.reshape(requests, 2), drawn_from, strict=True)


def assert_drawn_from(counts: Counter[Any], distribution: np.ndarray) -> None:
    statistic, limit = chi_square(counts, dict(enumerate(distribution.tolist())))
    assert statistic < limit


def test_drawn_drafts_leave_the_distribution_of_the_target(model: Any, model_dir: Path) -> None:
    """The first token of many outputs, and the second behind the likeliest first. The drafter is hotter than the
    target, so that much is rejected."""
    prompt = AutoTokenizer.from_pretrained(model_dir).encode("The capital of France is")

    def logits(text: list[int]) -> np.ndarray:
        with torch.inference_mode():
            return model(torch.tensor([text])).logits[0, -1:].numpy()

    target = probabilities(logits(prompt), temperature=1.0)[0]
    likeliest = int(target.argmax())
    behind = probabilities(logits([*prompt, likeliest]), temperature=1.0)[0]
    source = DraftModel(model=str(model_dir), kv_tokens=2048, longest=2, temperature=1.5, seed=1)
    dice = Dice(2)
    first: Counter[Any] = Counter()
    second: Counter[Any] = Counter()
    accepted = 0
    for chain, drawn_from in islice(drawn(source, prompt, 64, len(target)), SAMPLES):
        # What follows other first tokens, and both, is not looked at.
        rows = np.stack([target, behind, target])
        verdict = Rejection().verify(Proposal(chain, np.array([-1, 0], np.int16), drawn_from), rows, dice)
        emitted = [*chain[verdict.path].tolist(), verdict.bonus]
        accepted += bool(verdict.path)
        first[emitted[0]] += 1
        if emitted[0] == likeliest and len(emitted) > 1:
            second[emitted[1]] += 1
    source.close()
    print(f"{accepted / SAMPLES:.2f} of {SAMPLES} first tokens accepted, {second.total()} second ones looked at")
    assert 0.2 < accepted / SAMPLES < 0.95
    assert second.total() > 200
    assert_drawn_from(first, target)
    assert_drawn_from(second, behind)
    with pytest.raises(AssertionError):  # what the drafter alone would give is found out
        assert_drawn_from(first, probabilities(logits(prompt), temperature=1.5)[0])


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="draftd"):
        yield caplog


def test_a_model_with_other_tokens_drafts_in_those_that_both_have(
    model_dir: Path, cut_dir: Path, steps: Any, logged: pytest.LogCaptureFixture
) -> None:
    mapped = steps(
        DraftModel(model=str(cut_dir), target_tokenizer=str(model_dir), kv_tokens=2048, longest=LONGEST), requests=2
    )
    assert f"shares 24000 tokens with {model_dir}, of 24000 and 49152" in logged.text
    accepted = np.mean([step.accepted for step in mapped])
    unmapped = np.mean([step.accepted for step in steps(DraftModel(model=str(cut_dir), kv_tokens=2048), requests=1)])
    print(f"accepted of {LONGEST}: {accepted:.2f} with the tokens mapped, {unmapped:.2f} without")
    assert accepted > 2.0
    assert unmapped < 0.5


def test_how_a_text_came_makes_no_difference_to_its_translation(model_dir: Path, cut_dir: Path) -> None:
    """Of tokens that the drafter lacks each is several of its own."""
    options: dict[str, Any] = {"model": str(cut_dir), "target_tokenizer": str(model_dir), "kv_tokens": 2048}
    source = DraftModel(**options)
    text = [*range(1000, 1010), 30_000, 40_000, *range(2000, 2005), 45_000, 48_000, 500]
    (at_once,) = drafts(source, [(1, 0, text, 4)])
    drafts(source, [(2, 0, [*text[:11], 47_000, 700, 46_000], 4)])
    assert drafts(source, [(2, 11, text[11:], 4)]) == [at_once]
    drafts(source, [(3, 0, text[:11], 4)])
    assert drafts(source, [(3, 11, text[11:], 4)]) == [at_once]
    tokens = AutoTokenizer.from_pretrained(cut_dir).get_vocab().keys()
    assert set(AutoTokenizer.from_pretrained(model_dir).convert_ids_to_tokens(at_once)) <= tokens
    source.close()


def test_the_same_vocabulary_is_seen_as_such(model_dir: Path, logged: pytest.LogCaptureFixture) -> None:
    DraftModel(model=str(model_dir), target_tokenizer=str(model_dir), kv_tokens=2048).close()
    assert f"shares 49152 tokens with {model_dir}: the vocabularies are the same" in logged.text


@pytest.mark.parametrize(("size", "is_enough"), [(99, False), (100, True)])
def test_too_few_shared_tokens_are_refused(model_dir: Path, tmp_path: Path, size: int, is_enough: bool) -> None:
    ours = AutoTokenizer.from_pretrained(model_dir).convert_ids_to_tokens(range(1000, 1000 + size))
    words = {token: number for number, token in enumerate([*ours, "a word of its own"])}
    library = Tokenizer(models.WordLevel(words, unk_token="a word of its own"))
    PreTrainedTokenizerFast(tokenizer_object=library).save_pretrained(tmp_path)

    def make() -> None:
        DraftModel(model=str(model_dir), target_tokenizer=str(tmp_path), kv_tokens=2048).close()

    if is_enough:
        make()
    else:
        with pytest.raises(ValueError, match=f"shares 99 tokens with {tmp_path}, and 100 are the least"):
            make()
