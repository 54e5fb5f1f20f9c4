"""Models for tests: what a namespace may have learned, and the same in the twin."""

import numpy as np

from draftd import native
from draftd.reference.model import MOST_FALL, MOST_TRIALS, Model

TABLES = ["hits", "trials", "agreement", "standing", "correction"]


def random_model(seed: int) -> Model:
    """Numbers as learning leaves them, some about to be halved."""
    random, model = np.random.default_rng(seed), Model()
    for table in ("agreement", "standing"):
        weights = getattr(model, table)
        weights += random.normal(0.0, 0.2, weights.shape).astype(np.float32)
    model.trials[:] = random.choice([2.0, 10.5, MOST_TRIALS - 1.0, MOST_TRIALS], model.trials.shape)
    model.hits[:] = model.trials * random.random(model.trials.shape) ** 3
    model.correction[:] = np.cumsum(random.uniform(-MOST_FALL, 0.3, model.correction.shape))
    model.lessons = int(random.integers(10_000))
    return model


def native_model(model: Model) -> native.Model:
    return native.Model(**tables_of(model), lessons=model.lessons)


def tables_of(model: Model | native.Model) -> dict[str, np.ndarray]:
    return {table: getattr(model, table) for table in TABLES}


def assert_equal(one: native.Model, other: Model) -> None:
    """Bit for bit, but for the first two cells, which don't count."""
    assert one.lessons == other.lessons
    for table, numbers in tables_of(one).items():
        first = 2 if table in ("hits", "trials") else 0
        np.testing.assert_array_equal(numbers[first:], getattr(other, table)[first:], table)
