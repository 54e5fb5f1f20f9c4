"""The numbers of a model's cells, one for each kind of evidence, and of its sets of weights: cpp/src/learn/cells.h.

A number's digits are the classes of what is known about the evidence, each written in its own radix, so that a table by
number is an array with an axis for each class.
"""

import math
from bisect import bisect_left
from enum import IntEnum

import numpy as np


class Origin(IntEnum):
    """Where a context's followers were last seen."""

    PROMPT = 0
    OUTPUT = 1
    HISTORY = 2
    GROUP = 3
    CORPUS = 4


class Proposer(IntEnum):
    """Who proposed a candidate."""

    CONTEXT = 0
    PAIRS = 1
    FREQUENT = 2
    DRAFT_SOURCE = 3
    BOTH = 4  # a draft source and a context


class Role(IntEnum):
    """What a context's follower is beside those of longer contexts."""

    AT_LONGEST = 0
    KNOWN = 1
    NEW = 2


class Recency(IntEnum):
    FAR = 0
    NEAR = 1
    BETWEEN = 2


class Standing(IntEnum):
    """How a candidate stands at the longest context."""

    ABSENT = 0
    PRESENT = 1
    LIKELIEST = 2


MOST_TOKENS = [0, 1, 2, 3, 4, 6, 9, 15, 31]  # of a context, by class of its length; above: one more class
MOST_OCCURRENCES = [1, 2, 4, 8, 32]
MOST_DIFFERENT = [1, 2, 4, 16]
MOST_DEPTH = [1, 3]  # of a draft source's node
LEAST_SHARES = [(1, 10), (1, 4), (1, 2), (7, 10), (9, 10), (1, 1)]  # of the second class and those above
LEAST_STATED = [0.05, 0.15, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997]  # the same, of what a draft source states

LEVELS = 3
"""Contexts asked for each node."""

PAIR_PLACES = 6
PAIR_WEIGHTS = 6
RANKS = 24
PLACES = 3
"""Among its siblings, of a draft source's node that states nothing: first, second, later."""

CONTEXTS = (len(Origin), len(MOST_TOKENS) + 1, len(MOST_OCCURRENCES) + 1)
PER_CONTEXT = (len(LEAST_SHARES) + 1, 2, len(Recency), len(Role))
SPREADS = (len(MOST_DIFFERENT) + 1,)
PER_PAIR = (PAIR_PLACES, len(LEAST_SHARES) + 1, PAIR_WEIGHTS)
PER_DRAFTED = (len(LEAST_STATED) + 1 + PLACES, len(MOST_DEPTH) + 1)

# Cells 0 and 1 don't count: no evidence, and a constant.
NOTHING = 0
CONSTANT = 1
KNOWN = 2
MISSED = KNOWN + math.prod(CONTEXTS + PER_CONTEXT)
PAIRED = MISSED + math.prod(CONTEXTS + SPREADS)
PER_PAIRS = math.prod(PER_PAIR) + PAIR_PLACES + 1
FREQUENT = PAIRED + 2 * PER_PAIRS
DRAFTED = FREQUENT + RANKS
UNDRAFTED = DRAFTED + math.prod(PER_DRAFTED)
COUNT = UNDRAFTED + math.prod(PER_DRAFTED)

AGREEMENTS = (LEVELS, LEVELS + 1, LEVELS + 1)
STANDINGS = (CONTEXTS[1], CONTEXTS[0], len(Standing))
PER_PROPOSER = 1 + math.prod(STANDINGS)


def number(digits: tuple[int, ...], radices: tuple[int, ...]) -> int:
    """The first digit counts most."""
    written = 0
    for digit, radix in zip(digits, radices, strict=True):
        written = written * radix + digit
    return written


def share_class(part: int, whole: int) -> int:
    """In whole numbers: a quotient may be rounded up to the next class."""
    return sum(part * above >= whole * below for below, above in LEAST_SHARES)


def weight_share_class(share: np.float32) -> int:
    return sum(bool(share >= np.float32(below / above)) for below, above in LEAST_SHARES)


def context(origin: Origin, length: int, total: int) -> tuple[int, int, int]:
    """The classes of a context of so many tokens that occurs so often with a follower."""
    return origin, bisect_left(MOST_TOKENS, length), bisect_left(MOST_OCCURRENCES, total)


def known(of: tuple[int, int, int], share: int, latest: bool, recency: Recency, role: Role) -> int:
    """A follower of a context."""
    return KNOWN + number((*of, share, latest, recency, role), CONTEXTS + PER_CONTEXT)


def missed(of: tuple[int, int, int], distinct: int) -> int:
    """A context with so many different followers does not have the candidate."""
    return MISSED + number((*of, bisect_left(MOST_DIFFERENT, distinct)), CONTEXTS + SPREADS)


def paired(slot: int, place: int, share: int, weight: np.float32) -> int:
    """`slot` 0: pairs of the request, 1: of the history. `place` from 0, the latest. `weight`: of all followers."""
    return PAIRED + slot * PER_PAIRS + number((place, share, min(int(weight), PAIR_WEIGHTS - 1)), PER_PAIR)


def not_paired(slot: int, followers: int) -> int:
    """None of so many followers is the candidate."""
    return PAIRED + slot * PER_PAIRS + math.prod(PER_PAIR) + followers


def frequent(rank: int) -> int:
    return FREQUENT + rank


def stated(probability: np.float32) -> int:
    """What a draft source says of a node: its probability, given the parent's."""
    return sum(bool(probability >= np.float32(least)) for least in LEAST_STATED)


def unstated(before: int) -> int:
    """It states none; so many siblings come first."""
    return len(LEAST_STATED) + 1 + min(before, PLACES - 1)


def drafted(claim: int, depth: int) -> int:
    """A draft source has the candidate, as a node of that depth, and says that of it."""
    return DRAFTED + number((claim, bisect_left(MOST_DEPTH, depth)), PER_DRAFTED)


def undrafted(together: int, depth: int) -> int:
    """A draft source has others, and says that of all of them together."""
    return UNDRAFTED + number((together, bisect_left(MOST_DEPTH, depth)), PER_DRAFTED)


def agreement(first: int, knowing: int, contexts: int) -> int:
    """Weights of a candidate that `knowing` of `contexts` contexts have, `first` the longest of them."""
    return number((first, knowing, contexts), AGREEMENTS)


def standing(proposer: Proposer, longest: tuple[int, int, int] | None, how: Standing) -> int:
    """Weights of a candidate, by the classes of the longest context, if there is one, and how it stands there."""
    if longest is None:
        return proposer * PER_PROPOSER
    origin, length, _total = longest
    return proposer * PER_PROPOSER + 1 + number((length, origin, how), STANDINGS)
