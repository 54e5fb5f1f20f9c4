"""Models of a few tokens, drafts from them, and steps with a rule: small enough to know everything about."""

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules import Chance, Proposal, Rule

Text = tuple[int, ...]
Shape = tuple[int, ...]  # children of each node, by depth: (1, 1, 1) is a chain of three


class SmallModel:
    """A distribution of its own after every text, far from even."""

    def __init__(self, seed: int, vocabulary: int) -> None:
        self.vocabulary = vocabulary

        @cache
        def after(text: Text) -> NDArray[np.float64]:
            return np.random.default_rng([seed, len(text), *text]).dirichlet(np.full(vocabulary, 0.7))

        self.after = after

    def joint(self, length: int) -> dict[Text, float]:
        """The probability of every text of that length."""
        texts = itertools.product(range(self.vocabulary), repeat=length)
        return {
            text: float(np.prod([self.after(text[:place])[token] for place, token in enumerate(text)]))
            for text in texts
        }


class Guesses:
    """Drafts the likeliest tokens of a model: the same after the same text."""

    def __init__(self, model: SmallModel, shape: Shape) -> None:
        self.model, self.shape = model, shape

    def draft(self, text: Text, chance: Chance) -> Proposal:
        return _grown(text, self.shape, lambda at, count: self.model.after(at).argsort()[::-1][:count].tolist())


class Samples:
    """Samples from a model, siblings without replacement."""

    def __init__(self, model: SmallModel, shape: Shape) -> None:
        self.model, self.shape = model, shape

    def draft(self, text: Text, chance: Chance) -> Proposal:
        def sampled(at: Text, count: int) -> list[int]:
            left = self.model.after(at).copy()
            tokens = []
            for _ in range(count):
                tokens.append(chance.draw(left))
                left[tokens[-1]] = 0.0
            return tokens

        tree = _grown(text, self.shape, sampled)
        return Proposal(tree.tokens, tree.parents, rows_of(self.model, text, tree))


def _grown(text: Text, shape: Shape, children: Callable[[Text, int], list[int]]) -> Proposal:
    tokens: list[int] = []
    parents: list[int] = []
    level = [(-1, text)]
    for count in shape:
        grown = []
        for parent, at in level:
            for token in children(at, count):
                grown.append((len(tokens), (*at, token)))
                tokens.append(token)
                parents.append(parent)
        level = grown
    return Proposal(np.array(tokens, np.int32), np.array(parents, np.int16))


def rows_of(model: SmallModel, text: Text, proposal: Proposal) -> NDArray[np.float64]:
    """float64[n + 1, vocabulary]: the model's distributions after the text and after each node."""
    texts = [text]
    for token, parent in zip(proposal.tokens.tolist(), proposal.parents.tolist(), strict=True):
        texts.append((*texts[parent + 1], token))
    return np.array([model.after(at) for at in texts])


def step(rule: Rule, target: SmallModel, drafter: Guesses | Samples, text: Text, chance: Chance) -> Text:
    """The text and what one verify step emits after it."""
    proposal = drafter.draft(text, chance)
    verdict = rule.verify(proposal, rows_of(target, text, proposal), chance)
    return (*text, *proposal.tokens[verdict.path].tolist(), verdict.bonus)
