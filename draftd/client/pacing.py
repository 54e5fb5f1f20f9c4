"""What a verifier says of the cost of its steps, when it greets a drafter and with each step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from draftd.client.columns import whole
from draftd.pacing.cost_table import MOST_SIZES, CostTable
from draftd.wire import Hello, Pacing, StepBatch

PACINGS = {pacing.name.lower(): pacing for pacing in Pacing}
MOST_WIDTH = 2**16 - 1  # StepBatch.widths is a column of u16
LONGEST_STEP = 3600.0  # seconds


class PacingOptions(TypedDict, total=False):
    """Keywords of a client, all optional; docs/budgets.md says what they do."""

    pacing: Literal["as_asked", "survival", "schedule"] | None  # None: as the server is configured
    cost: CostTable | None  # what a step takes; None: the drafter learns it from step_seconds and step_width
    graph_sizes: Sequence[int]  # batch sizes, ascending, that the engine pads to; none: it doesn't pad


class StepOptions(TypedDict, total=False):
    """Keywords of a step, all optional; docs/budgets.md says what they do."""

    step_seconds: float | None  # that the engine's last step took
    step_width: int | None  # tokens that went through the target in it, padding not counted
    other_tokens: int  # of the next step, beside those of its rows: prefill, requests that are not drafted for
    widths: Sequence[int]  # ascending; every row is padded to the same one of these numbers of nodes, or has none
    cost: CostTable | None  # from this step on, instead of the client's


def fill_greeting(hello: Hello, options: PacingOptions) -> None:
    """Raises ValueError for an option that can't be meant, TypeError for an unknown one."""
    _refuse_unknown(options.keys() - PacingOptions.__annotations__.keys())
    pacing, cost = options.get("pacing"), options.get("cost")
    if pacing is not None:
        if pacing not in [*PACINGS]:  # a list: what can't be hashed is told the same
            raise ValueError(f"pacing is {pacing!r}; give one of {', '.join(PACINGS)}, or None")
        hello.pacing = PACINGS[pacing]
    if cost is not None:
        hello.cost.CopyFrom(_checked(cost).message())
    hello.graph_sizes = _ascending("graph_sizes", options.get("graph_sizes", ()), 2**32 - 1).astype("<u4").tobytes()


@dataclass(frozen=True, slots=True)
class Load:
    """What one step says of its cost. Raises ValueError for what can't be meant."""

    step_micros: int = 0
    step_width: int = 0
    other_tokens: int = 0
    widths: bytes = b""
    cost: CostTable | None = None

    def fill(self, batch: StepBatch) -> None:
        batch.step_micros, batch.step_width, batch.other_tokens = self.step_micros, self.step_width, self.other_tokens
        batch.widths = self.widths
        if self.cost is not None:
            batch.cost.CopyFrom(self.cost.message())

    def beside(self, tokens: int, *, is_first: bool) -> "Load":
        """Of a part of a step whose other parts have so many tokens. The last step is told of once."""
        if is_first:
            return Load(self.step_micros, self.step_width, self.other_tokens + tokens, self.widths, self.cost)
        return Load(other_tokens=self.other_tokens + tokens, widths=self.widths)


def load_of(options: StepOptions) -> Load | None:
    """None where nothing is said. Raises ValueError for an option that can't be meant, TypeError for an unknown one."""
    if not options:
        return None
    _refuse_unknown(options.keys() - StepOptions.__annotations__.keys())
    width = options.get("step_width")
    stated = options.get("step_seconds")
    seconds = None if stated is None else _real("step_seconds", stated)
    if seconds is not None and not 0 <= seconds <= LONGEST_STEP:
        raise ValueError(f"step_seconds is {seconds}; give what the last step took, at most {LONGEST_STEP:.0f}")
    if (seconds is None) != (width is None):
        raise ValueError("step_seconds and step_width belong together; give both or none")
    cost = options.get("cost")
    return Load(
        step_micros=0 if seconds is None else round(seconds * 1e6),
        step_width=0 if width is None else _count("step_width", width, least=1),
        other_tokens=_count("other_tokens", options.get("other_tokens", 0)),
        widths=_ascending("widths", options.get("widths", ()), MOST_WIDTH).astype("<u2").tobytes(),
        cost=None if cost is None else _checked(cost),
    )


def _refuse_unknown(names: set[str]) -> None:
    if names:
        raise TypeError(f"unknown option {', '.join(sorted(names))}")


def _checked(cost: CostTable) -> CostTable:
    if not isinstance(cost, CostTable):
        raise TypeError(f"cost is {cost!r}; give a draftd.client.CostTable, or None")
    return cost


def _real(name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}; give a number") from None


def _count(name: str, value: int, least: int = 0) -> int:
    count = whole(name, value)
    if not least <= count < 2**32:
        raise ValueError(f"{name} is {count}; give a number of tokens, at least {least}")
    return count


def _ascending(name: str, values: Sequence[int], most: int) -> NDArray[np.int64]:
    try:
        numbers = np.array([whole(name, value) for value in values], np.int64)
    except TypeError:
        raise ValueError(f"{name} is {values!r}; give a row of numbers") from None
    except OverflowError:
        raise ValueError(f"{name} is {list(values)[:20]}; give numbers up to {most}") from None
    if len(numbers) and (numbers[0] < 1 or numbers[-1] > most or (numbers[1:] <= numbers[:-1]).any()):
        raise ValueError(f"{name} is {numbers.tolist()[:20]}; give numbers from 1 to {most}, each above the one before")
    if len(numbers) > MOST_SIZES:
        raise ValueError(f"{name} has {len(numbers)} numbers; give at most {MOST_SIZES}")
    return numbers
