"""From logits to distributions."""

import numpy as np
import pytest

from draftd.verify.probabilities import probabilities

LOGITS = np.array([[1.0, 3.0, 3.0], [1000.0, 0.0, -1000.0]], np.float32)


def test_at_temperature_0_the_likeliest_token_of_the_smallest_id_has_it_all() -> None:
    assert probabilities(LOGITS, 0.0).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_it_is_softmax_without_overflow() -> None:
    weights = np.exp([1.0, 3.0, 3.0])
    assert probabilities(LOGITS, 1.0)[0] == pytest.approx(weights / weights.sum())
    assert probabilities(LOGITS, 1.0)[1].tolist() == [1.0, 0.0, 0.0]


def test_temperature_divides_the_logits() -> None:
    assert probabilities(LOGITS, 2.0)[0] == pytest.approx(probabilities(LOGITS / 2, 1.0)[0])


@pytest.mark.parametrize("temperature", [-1.0, float("nan")])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="give 0 for greedy decoding, or more"):
        probabilities(LOGITS, temperature)
