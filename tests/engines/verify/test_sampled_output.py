"""Sampling through the engine emits the model's own distribution: over every way that chance can go."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from draftd.verify.drafts import DraftSource
from draftd.verify.rules import Block, Chance, OneHot, Rejection, Rule, Thresholds
from draftd.verify.verifier import Verifier
from tests.engines.verify.sources import LikeliestTwo, Sampled, after
from tests.unit.verify.exhaustive import distribution

VOCABULARY = 3
LENGTH = 2  # tokens whose joint distribution is compared; steps emit up to three
PROMPT = [0, 2, 1]
ROUNDING = 1e-5  # of float32, in a product of a few probabilities


def tiny(seed: int) -> Any:
    """A model with weights that make its distributions uneven."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.7,
    )
    return LlamaForCausalLM(config).eval()


TARGET, DRAFTER = tiny(1), tiny(2)


def farthest(rule: Rule, drafts: Callable[[Chance], DraftSource]) -> float:
    """The largest error of any text's probability."""

    def emitted(chance: Chance) -> tuple[int, ...]:
        verifier = Verifier(TARGET, rule, drafts(chance), temperature=1.0, chance=chance)
        return tuple(token for step in verifier.generate({"a": PROMPT}, LENGTH) for token in step.tokens)

    found = distribution(emitted)
    wanted = {
        text: np.prod([after(TARGET, [*PROMPT, *text[:place]])[text[place]] for place in range(LENGTH)])
        for text in itertools.product(range(VOCABULARY), repeat=LENGTH)
    }
    assert max(wanted.values()) > 2 * min(wanted.values())
    return max(abs(found.get(text, 0.0) - probability) for text, probability in wanted.items())


@pytest.mark.parametrize(
    ("rule", "drafts"),
    [
        (OneHot(), lambda chance: None),
        (OneHot(), lambda chance: LikeliestTwo(DRAFTER)),
        (Rejection(), lambda chance: Sampled(DRAFTER, 1, chance)),
        (Block(), lambda chance: Sampled(DRAFTER, 2, chance)),
    ],
    ids=["no drafts", "one-hot tree", "rejection", "block"],
)
def test_lossless_rules_are_lossless_in_the_engine(rule: Rule, drafts: Callable[[Chance], DraftSource]) -> None:
    assert farthest(rule, drafts) < ROUNDING


def test_a_lossy_rule_is_found_out() -> None:
    assert farthest(Thresholds(accumulated=0.5), lambda chance: LikeliestTwo(DRAFTER)) > 1000 * ROUNDING
