"""What a rejection leaves of a distribution: weights, which need not sum to 1."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Weights = NDArray[np.float64]


def without(weights: Weights, tokens: ArrayLike) -> Weights:
    """The weights with nothing on these tokens. If that is all there was, as rounding can have it, all of them."""
    left = weights.copy()
    left[np.asarray(tokens, np.intp)] = 0.0
    return left if left.any() else weights


def excess(target: Weights, draft: Weights) -> Weights:
    """How far `target` is above `draft`, where it is. If that is nowhere, as rounding can have it, all of `target`."""
    left = np.maximum(target - draft, 0.0)
    return left if left.any() else target
