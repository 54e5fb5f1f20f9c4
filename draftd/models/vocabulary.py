"""The tokens that a drafter and its target both have, and the target's text in the drafter's tokens.

Where vocabularies differ, drafts are limited to the tokens that both have: token-level intersection, Timor et al.,
arXiv 2502.05202. Verification stays exact, since what the drafter can't say only goes undrafted.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer

from draftd.observe import facts

LEAST_SHARED = 100
"""Tokens. Byte-level vocabularies of any languages share more; below, one of the two is not what was meant."""

SPACE_OF_SENTENCEPIECE, SPACE_OF_BYTES = "\u2581", "\u0120"
MOST_SPELLED = 1 << 16  # tokens of the target whose spelling is remembered

Spell = Callable[[int], Sequence[int]]


class Vocabulary:
    """Pairs of ids, one for each shared token. Immutable: texts of many threads may be translated at once."""

    def __init__(self, drafter: NDArray[np.int64], target: NDArray[np.int64], spell: Spell) -> None:
        """`drafter` and `target`, int64[shared], at least one: a token's id here and there. `spell`: a token of the
        target that is not shared, in tokens of the drafter; none where that can't be done."""
        self.drafter = drafter
        self.target = target
        self._spell = lru_cache(MOST_SPELLED)(spell)
        self._table = np.full(int(target.max()) + 1, -1, np.int64)  # by the target's id
        self._table[target] = drafter

    def to_drafter(self, tokens: NDArray[np.int32]) -> NDArray[np.int64]:
        """The target's tokens, ids >= 0, as the drafter reads them: int64[any length]. A token that is not shared is
        spelled in those of the drafter."""
        ids = np.full(len(tokens), -1, np.int64)
        inside = tokens < len(self._table)
        ids[inside] = self._table[tokens[inside]]
        if (ids >= 0).all():
            return ids
        pairs = zip(ids.tolist(), tokens.tolist(), strict=True)
        spelled = [[known] if known >= 0 else self._spell(token) for known, token in pairs]
        return np.array(list(chain.from_iterable(spelled)), np.int64)


def same_vocabulary(size: int) -> Vocabulary:
    """All ids below `size` mean the same to both. Others, which the drafter can't read, are left out of its text."""
    ids = np.arange(size)
    return Vocabulary(ids, ids, lambda _: ())


def compared_vocabulary(drafter: str, target: str, size: int) -> Vocabulary:
    """Of two tokenizers, by path or name: what both have; everything, where their maps from tokens to ids are the same.
    `size`: tokens that the draft model has weights for.

    Raises ValueError where too few are shared, and OSError where there is no tokenizer."""
    ours, theirs = AutoTokenizer.from_pretrained(drafter), AutoTokenizer.from_pretrained(target)
    our_ids, their_ids = ours.get_vocab(), theirs.get_vocab()
    pairs = shared_tokens(our_ids, their_ids, size)
    facts.vocabularies_compared(drafter, target, len(pairs), (len(our_ids), len(their_ids)), same=our_ids == their_ids)
    if len(pairs) < LEAST_SHARED:
        raise ValueError(
            f"draft model {drafter} shares {len(pairs)} tokens with {target}, and {LEAST_SHARED} are the least; "
            "choose one with a tokenizer of the target's kind"
        )

    def spelled(token: int) -> Sequence[int]:
        ids = ours.encode(theirs.decode([token]), add_special_tokens=False)
        return [token_id for token_id in ids if token_id < size]

    return Vocabulary(pairs[:, 0], pairs[:, 1], spelled)


def shared_tokens(drafter: Mapping[str, int], target: Mapping[str, int], size: int) -> NDArray[np.int64]:
    """int64[shared, 2]: the ids, here and there, of the tokens that are in both maps and below `size` in the drafter's;
    in the order of the drafter's ids."""
    ours, theirs = _with_one_space(drafter), _with_one_space(target)
    pairs = sorted((ours[token], theirs[token]) for token in ours.keys() & theirs.keys() if ours[token] < size)
    return np.array(pairs, np.int64).reshape(-1, 2)


def _with_one_space(vocabulary: Mapping[str, int]) -> dict[str, int]:
    """With one sign for the space, of the two that there are."""
    return {token.replace(SPACE_OF_SENTENCEPIECE, SPACE_OF_BYTES): token_id for token, token_id in vocabulary.items()}
