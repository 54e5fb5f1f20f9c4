"""The likeliest nodes of a batch, where a client by itself keeps to a budget."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from draftd.client.trees import RatedNodes


def path_survival(tree: RatedNodes) -> NDArray[np.float32]:
    """float32[n]: survival as it must be, never above a parent's, whatever the drafter says."""
    survivals: list[float] = []
    for parent, survival in zip(tree.parents.tolist(), tree.survival.tolist(), strict=True):
        sane = survival if survival > 0 else 0.0  # also for what is no number
        survivals.append(min(sane, survivals[parent]) if parent >= 0 else sane)
    return np.array(survivals, np.float32)


def likeliest(
    survivals: Sequence[NDArray[np.float32]], budget: int | None, least: float = 0.0
) -> list[NDArray[np.bool_]]:
    """bool[n] for each row's path survivals: the nodes to keep, of all rows together at most `budget`.

    None below `least`, and no node without its parent. Of nodes that are equally likely the first of each row come
    first, so that rows share evenly.
    """
    sizes = [len(row) for row in survivals]
    survival = np.concatenate([*survivals, np.zeros(0, np.float32)])
    keep = survival >= least
    if budget is not None and np.count_nonzero(keep) > budget:
        place = np.concatenate([np.arange(size) for size in sizes])
        row = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((row, place, -survival))
        keep[order[keep[order]][budget:]] = False
    return np.split(keep, np.cumsum(sizes)[:-1]) if sizes else []
