"""From a model's logits to the distribution that a rule verifies against."""

import numpy as np
from numpy.typing import NDArray


def probabilities(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """float64[rows, vocabulary] of logits of that shape. At temperature 0 the likeliest token has all of it, of several
    the one with the smallest id, as greedy decoding has it. Raises ValueError for a temperature below 0."""
    if not temperature >= 0.0:
        raise ValueError(f"temperature is {temperature}; give 0 for greedy decoding, or more")
    if temperature == 0.0:
        certain = np.zeros(logits.shape)
        certain[np.arange(len(logits)), logits.argmax(axis=1)] = 1.0
        return certain
    scaled = logits.astype(np.float64) / temperature
    weights: NDArray[np.float64] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
