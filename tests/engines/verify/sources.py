"""Draft sources of the tests: junk, and a model that samples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from draftd.client import RequestStates
from draftd.verify.probabilities import probabilities
from draftd.verify.rules import Chance, Proposal


class Texts(ABC):
    """What every source here knows: the text of each request."""

    reads_states = False

    def __init__(self) -> None:
        self.texts: dict[str, list[int]] = {}
        self.lengths_at_end: dict[str, int] = {}

    def open(self, request_id: str, prompt: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]) -> None:
        self.texts[request_id] = list(prompt)

    def propose(
        self, emitted: Mapping[str, Sequence[int]], states: Mapping[str, RequestStates]
    ) -> Mapping[str, Proposal]:
        for request_id, tokens in emitted.items():
            self.texts[request_id] += tokens
        return {request_id: self.proposal(self.texts[request_id]) for request_id in emitted}

    def close(self, request_id: str, emitted: Sequence[int]) -> None:
        self.lengths_at_end[request_id] = len(self.texts.pop(request_id)) + len(emitted)

    @abstractmethod
    def proposal(self, text: list[int]) -> Proposal: ...


class Foreseen(Texts):
    """Chains of all that is left of a text."""

    def __init__(self, whole_text: Sequence[int]) -> None:
        super().__init__()
        self._whole_text = np.array(whole_text, np.int32)

    def proposal(self, text: list[int]) -> Proposal:
        left = self._whole_text[len(text) :]
        return Proposal(left, np.arange(-1, len(left) - 1, dtype=np.int16))


class HalfJunk(Texts):
    """Trees of random tokens and shapes, in which some of what really comes is hidden, in any order of nodes."""

    def __init__(self, whole_texts: Sequence[Sequence[int]], vocabulary: int, nodes: int) -> None:
        super().__init__()
        self._whole_texts, self._vocabulary, self._nodes = whole_texts, vocabulary, nodes
        self._random = np.random.default_rng(1)

    def proposal(self, text: list[int]) -> Proposal:
        whole = next(list(it) for it in self._whole_texts if list(it[: len(text)]) == text)
        right = whole[len(text) : len(text) + int(self._random.integers(0, 5))]
        tokens: list[int] = []
        parents: list[int] = []
        last_right = -1
        while len(tokens) < self._nodes:
            is_right = bool(right) and self._random.random() < 0.4
            parent = last_right if is_right else int(self._random.integers(-1, len(tokens)))
            token = right.pop(0) if is_right else int(self._random.integers(self._vocabulary))
            if (parent, token) in zip(parents, tokens, strict=True):
                if is_right:
                    right.clear()  # a random node says it already; what comes after it stays hidden
                continue
            last_right = len(tokens) if is_right else last_right
            tokens.append(token)
            parents.append(parent)
        return Proposal(np.array(tokens, np.int32), np.array(parents, np.int16))


class Sampled(Texts):
    """Chains that a model samples at temperature 1, with the probabilities that it had."""

    def __init__(self, model: Any, length: int, chance: Chance) -> None:
        super().__init__()
        self._model, self._length, self._chance = model, length, chance

    def proposal(self, text: list[int]) -> Proposal:
        tokens: list[int] = []
        rows = [after(self._model, text)]
        while len(tokens) < self._length:
            tokens.append(self._chance.draw(rows[-1]))
            rows.append(after(self._model, text + tokens))
        return Proposal(np.array(tokens, np.int32), np.arange(-1, self._length - 1, dtype=np.int16), np.array(rows))


class LikeliestTwo(Texts):
    """A tree of the two tokens that a model finds likeliest, and of the likeliest one behind each."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def proposal(self, text: list[int]) -> Proposal:
        two = after(self._model, text).argsort()[::-1][:2].tolist()
        behind = [int(after(self._model, [*text, token]).argmax()) for token in two]
        return Proposal(np.array([*two, *behind], np.int32), np.array([-1, -1, 0, 1], np.int16))


def after(model: Any, text: Sequence[int]) -> np.ndarray:
    """float64[vocabulary]: the model's distribution after a text, without any cache."""
    with torch.inference_mode():
        logits = model(torch.tensor([list(text)])).logits[0, -1:].numpy()
    return probabilities(logits, temperature=1.0)[0]
