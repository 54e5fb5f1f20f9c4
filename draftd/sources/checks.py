"""Does a class keep to the interface, and an answer to the question? All that is wrong is named at once."""

import inspect
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from draftd.sources.source import Nature, Proposals, Shape, Source, begins

ARGUMENTS = {
    name: tuple(inspect.signature(method).parameters)[1:]
    for name, method in inspect.getmembers(Source, inspect.isfunction)
    if not name.startswith("_")
}
"""Of each method of the interface, what it is called with."""


def faults_of_class(candidate: object) -> list[str]:
    """What keeps it from being a source; nothing if it is one."""
    if not inspect.isclass(candidate):
        return [f"{candidate!r} is no class"]
    faults = [] if isinstance(getattr(candidate, "nature", None), Nature) else ["nature is no Nature"]
    for name, arguments in ARGUMENTS.items():
        faults += _faults_of_method(candidate, name, arguments)
    return faults


def _faults_of_method(candidate: type, name: str, arguments: tuple[str, ...]) -> Iterator[str]:
    method = inspect.getattr_static(candidate, name, None)
    if method is None:
        yield f"{name} is missing"
        return
    if not inspect.isfunction(method):
        yield f"{name} is no plain method"
        return
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
        yield f"{name} must return its answer, not a coroutine or a generator"
    signature = inspect.signature(method)
    try:
        signature.bind(None, *arguments)
    except TypeError:
        yield f"{name}{signature} must take ({', '.join(('self', *arguments))})"


def require_answer(answer: object, nature: Nature, budget: NDArray[np.uint32]) -> Proposals:
    """The answer of a source of that nature. Raises ValueError or TypeError, which say what is wrong with it."""
    if not isinstance(answer, Proposals):
        raise TypeError(f"it answered {type(answer).__name__}, not Proposals")
    ends = answer.node_end
    _require_column("node_end", ends, np.uint32, len(budget))
    first = begins(ends)
    _refuse_rows(ends < first, "ends before it begins")
    _refuse_rows(ends - first > budget, "has more nodes than it may")
    nodes = int(ends[-1]) if len(ends) else 0
    _require_column("tokens", answer.tokens, np.int32, nodes)
    _refuse_nodes(ends, answer.tokens < 0, "has a negative token id")

    if nature.shape is Shape.TREE:
        _require_column("parents", answer.parents, np.int16, nodes)
    elif answer.parents is not None:
        raise ValueError("a source of chains states no parents")
    if nature.states_survival:
        _require_column("survival", answer.survival, np.float32, nodes)
    elif answer.survival is not None:
        raise ValueError("a source that states no survival gave one")

    if answer.parents is not None or answer.survival is not None:
        _require_order(answer, np.repeat(first, ends - first).astype(np.int64))
    return answer


def _require_order(answer: Proposals, first: NDArray[np.int64]) -> None:
    """`first`: of each node, the first node of its row."""
    ends = answer.node_end
    number = np.arange(len(first)) - first
    parents = number - 1 if answer.parents is None else answer.parents
    _refuse_nodes(ends, (parents < -1) | (parents >= number), "has a node before its parent")
    if answer.survival is not None:
        survival = answer.survival
        _refuse_nodes(ends, ~((survival >= 0) & (survival <= 1)), "has a survival outside [0, 1]")
        outlives = (parents >= 0) & (survival > survival[first + np.maximum(parents, 0)])
        _refuse_nodes(ends, outlives, "has a node that outlives its parent")


def _require_column(name: str, column: object, dtype: type[np.generic], entries: int) -> None:
    if not isinstance(column, np.ndarray) or column.dtype != dtype or column.shape != (entries,):
        found = f"{column.dtype}{list(column.shape)}" if isinstance(column, np.ndarray) else type(column).__name__
        raise ValueError(f"{name} is {found}, not {np.dtype(dtype)}[{entries}]")


def _refuse_rows(wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise ValueError(f"row {wrong.argmax()} {what}")


def _refuse_nodes(ends: NDArray[np.uint32], wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise ValueError(f"row {np.searchsorted(ends, wrong.argmax(), side='right')} {what}")
