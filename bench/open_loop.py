"""Steps on a schedule, whose latency counts from when they were due.

A loop that waits for an answer before it asks again asks less just when the drafter is slow, and so misses what it is
there to measure (coordinated omission). Here each step is due at a time that was fixed before; one that could not
begin in time because the one before it took too long has waited, and that counts.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

LONGEST = 60_000_000  # microseconds; longer ones count as this
DIGITS = 3  # significant, of what is recorded
UNSTEADY = 0.1  # share of the period by which a step may be longer or shorter


def due_times(rate: float, seconds: float, seed: int) -> NDArray[np.float64]:
    """When steps are due, in seconds from the start. Periods differ by up to 10 %, as those of an engine do: so engines
    of one rate meet at a drafter in every way, instead of always or never."""
    steps = max(1, round(rate * seconds))
    periods = np.random.default_rng(seed).uniform(1 - UNSTEADY, 1 + UNSTEADY, steps) / rate
    return np.cumsum(periods)


class Clock(Protocol):
    """Of the steps: `time.monotonic` and `time.sleep`."""

    def now(self) -> float: ...

    def sleep_until(self, moment: float) -> None: ...


class SystemClock:
    """Counts seconds from a moment that all processes of the machine share."""

    def now(self) -> float:
        return time.monotonic()

    def sleep_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - self.now()))


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, LONGEST, DIGITS)


@dataclass
class Latencies:
    """Of steps, in microseconds."""

    histogram: HdrHistogram = field(default_factory=_histogram)

    def add(self, seconds: float) -> None:
        self.histogram.record_value(min(max(1, round(seconds * 1e6)), LONGEST))

    def percentile(self, percent: float) -> int:
        """0 if there are none."""
        return int(self.histogram.get_value_at_percentile(percent))

    @property
    def count(self) -> int:
        return int(self.histogram.get_total_count())

    def merge(self, other: "Latencies") -> None:
        self.histogram.add(other.histogram)

    def __getstate__(self) -> bytes:
        """For another process."""
        return bytes(self.histogram.encode())

    def __setstate__(self, packed: bytes) -> None:
        self.histogram = _histogram()
        self.histogram.decode_and_add(packed)


def run(
    due: Iterable[float],
    step: Callable[[], None],
    after_step: Callable[[], None],
    clock: Clock,
    latencies: Latencies,
    waits: Latencies,
) -> None:
    """Takes every step, each as soon as it is due and what is done after the one before it is over.

    `waits` gets how long each could not begin, which is a part of its latency."""
    for moment in due:
        clock.sleep_until(moment)
        waits.add(clock.now() - moment)
        step()
        latencies.add(clock.now() - moment)
        after_step()
