"""Greedy verification against brute force over all paths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from draftd.verify.rules import Greedy, Proposal

VOCABULARY = 4


@st.composite
def trees(draw: st.DrawFn) -> Proposal:
    """Trees of up to ten nodes; a node that would repeat a sibling's token is left out."""
    tokens: list[int] = []
    parents: list[int] = []
    for _ in range(draw(st.integers(0, 10))):
        parent, token = draw(st.integers(-1, len(tokens) - 1)), draw(st.integers(0, VOCABULARY - 1))
        if (parent, token) not in zip(parents, tokens, strict=True):
            parents.append(parent)
            tokens.append(token)
    return Proposal(np.array(tokens, np.int32), np.array(parents, np.int16))


def path_to(proposal: Proposal, node: int) -> list[int]:
    return [] if node == -1 else [*path_to(proposal, int(proposal.parents[node])), node]


def longest_greedy_path(proposal: Proposal, target: NDArray[np.float64]) -> list[int]:
    """Of all paths those whose every token is the likeliest after the one before it; the longest of them."""
    paths = [path_to(proposal, node) for node in range(-1, len(proposal.tokens))]
    greedy = [
        path
        for path in paths
        if all(proposal.tokens[node] == target[proposal.parents[node] + 1].argmax() for node in path)
    ]
    return max(greedy, key=len)


@given(trees(), st.integers(0, 2**32 - 1))
def test_it_accepts_the_longest_path_of_likeliest_tokens(proposal: Proposal, seed: int) -> None:
    target = np.random.default_rng(seed).dirichlet(np.ones(VOCABULARY), len(proposal.tokens) + 1)
    verdict = Greedy().verify(proposal, target, None)
    assert verdict.path == longest_greedy_path(proposal, target)
    assert verdict.bonus == target[verdict.path[-1] + 1 if verdict.path else 0].argmax()


def test_of_equally_likely_tokens_it_takes_the_smallest_as_decoding_does() -> None:
    proposal = Proposal(np.array([2, 1], np.int32), np.array([-1, -1], np.int16))
    target = np.array([[0.2, 0.4, 0.4], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    verdict = Greedy().verify(proposal, target, None)
    assert (verdict.path, verdict.bonus) == ([1], 1)
