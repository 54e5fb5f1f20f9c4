"""How far stated survival can be trusted, over all drafted nodes of a replay."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BUCKETS = 20  # of equal width, between survival 0 and 1

_FLUSH_AT = 4096  # nodes: what a step adds is too little for numpy to be worth its calls
_CELLS_PER_LOGIT = 64  # ranks are of the logit, rounded: within 1.6 % of the odds, two survivals count as equal
_LARGEST_LOGIT = 14.0


class Calibration:
    """Compares each drafted node's survival with whether it was accepted: it and all its ancestors agreed.

    Its size does not depend on how many nodes there were.
    """

    def __init__(self) -> None:
        self._nodes = np.zeros(BUCKETS, np.int64)
        self._accepted = np.zeros(BUCKETS, np.int64)
        self._survival = np.zeros(BUCKETS)  # summed
        self._squared_error = 0.0
        self._ranks = np.zeros((2, 2 * round(_LARGEST_LOGIT * _CELLS_PER_LOGIT) + 1), np.int64)  # rejected, accepted
        self._waiting: list[tuple[NDArray[np.float32], tuple[int, ...]]] = []
        self._waiting_nodes = 0

    def add(self, survival: NDArray[np.float32], path: tuple[int, ...]) -> None:
        """One draft: float32[n] of its nodes, and the places of those that were accepted."""
        self._waiting.append((survival, path))
        self._waiting_nodes += len(survival)
        if self._waiting_nodes >= _FLUSH_AT:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting_nodes:
            return
        survival = np.concatenate([nodes for nodes, _ in self._waiting]).astype(np.float64)
        accepted = np.zeros(len(survival), np.bool_)
        first = 0
        for nodes, path in self._waiting:
            accepted[[first + place for place in path]] = True
            first += len(nodes)
        self._waiting, self._waiting_nodes = [], 0

        bucket = np.minimum((survival * BUCKETS).astype(np.int64), BUCKETS - 1)
        self._nodes += np.bincount(bucket, minlength=BUCKETS)
        self._accepted += np.bincount(bucket[accepted], minlength=BUCKETS)
        self._survival += np.bincount(bucket, survival, minlength=BUCKETS)
        self._squared_error += float(np.square(survival - accepted).sum())
        cell = _cell_of(survival)
        for outcome, chosen in enumerate((~accepted, accepted)):
            self._ranks[outcome] += np.bincount(cell[chosen], minlength=self._ranks.shape[1])

    @classmethod
    def pooled(cls, parts: Iterable["Calibration"]) -> "Calibration":
        """All their nodes as one."""
        whole = cls()
        for part in parts:
            part._flush()
            whole._nodes += part._nodes
            whole._accepted += part._accepted
            whole._survival += part._survival
            whole._squared_error += part._squared_error
            whole._ranks += part._ranks
        return whole

    @property
    def bucket_nodes(self) -> NDArray[np.int64]:
        """int64[20]: nodes whose survival is in the bucket."""
        self._flush()
        return self._nodes

    @property
    def mean_survival(self) -> NDArray[np.float64]:
        """float64[20]: of the bucket's nodes; NaN for none."""
        return _ratio(self._survival, self.bucket_nodes)

    @property
    def accepted_share(self) -> NDArray[np.float64]:
        """float64[20]: of the bucket's nodes; NaN for none."""
        nodes = self.bucket_nodes
        return _ratio(self._accepted, nodes)

    @property
    def nodes(self) -> int:
        return int(self.bucket_nodes.sum())

    @property
    def error(self) -> float:
        """Sum over the buckets of their share of the nodes times |mean survival - accepted share|."""
        return float(np.abs(self._survival - self._accepted).sum() / self.nodes) if self.nodes else 0.0

    @property
    def brier_score(self) -> float:
        """Mean squared difference of survival and outcome; 0 is perfect."""
        return self._squared_error / self.nodes if self.nodes else 0.0

    @property
    def auc(self) -> float | None:
        """Probability that an accepted node has a higher survival than a rejected one, ties counting half.

        None if no node was accepted, or none rejected."""
        self._flush()
        rejected, accepted = self._ranks
        pairs = int(rejected.sum()) * int(accepted.sum())
        below = np.cumsum(rejected) - rejected / 2
        return float((accepted * below).sum() / pairs) if pairs else None

    def threshold_keeping(self, accepted: float) -> float:
        """The highest threshold, up to rounding, that leaves this share of all accepted nodes."""
        self._flush()
        left = np.cumsum(self._ranks[1][::-1])[::-1]
        cells = np.flatnonzero(left >= accepted * left[0])
        return _survival_of(int(cells[-1]))

    def as_dict(self) -> dict[str, object]:
        """For JSON; null in buckets without nodes."""
        return {
            "error": self.error,
            "brier_score": self.brier_score,
            "auc": self.auc,
            "bucket_nodes": self.bucket_nodes.tolist(),
            "bucket_survival": _or_none(self.mean_survival),
            "bucket_accepted_share": _or_none(self.accepted_share),
        }


def _cell_of(survival: NDArray[np.float64]) -> NDArray[np.int64]:
    with np.errstate(divide="ignore"):
        logit = np.log(survival) - np.log1p(-survival)
    from_zero = np.clip(logit, -_LARGEST_LOGIT, _LARGEST_LOGIT) + _LARGEST_LOGIT
    cell: NDArray[np.int64] = np.rint(from_zero * _CELLS_PER_LOGIT).astype(np.int64)
    return cell


def _survival_of(cell: int) -> float:
    """The lowest survival that is rounded to the cell; the first one takes all below."""
    return 1 / (1 + math.exp(_LARGEST_LOGIT - (cell - 0.5) / _CELLS_PER_LOGIT)) if cell else 0.0


def _ratio(sums: NDArray[np.float64] | NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.divide(sums, nodes, out=np.full(len(nodes), np.nan), where=nodes > 0)
    return shares


def _or_none(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
