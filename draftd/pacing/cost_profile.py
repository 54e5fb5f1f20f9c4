"""What steps cost, learned from the steps of a verifier while it works.

Measured times are sorted into *sizes*, token counts at which a step is likely to become dearer: 1, 2, 4, 8, then
multiples of 8, 32, 64 and 256. What is believed of a size is the median of its latest times, so that a pause or a
prefill says little. As a longer step never costs less, sizes beside each other that contradict that are pooled
(isotonic regression by pooling adjacent violators, Ayer et al. 1955).

**Change.** Where three times in a row differ from what is believed by a tenth, in the same direction, the machine is
not what it was: a clock was changed, a neighbour came or went. The size forgets its older times. If it became cheaper,
the next wider size is unknown again, and so on as far as cheaper ones are found.

**Exploration** needs no steps of its own. Who drafts what pays by this table goes where the table is too hopeful, and
finds out by that. So:

- the next size above one that is known is believed to cost the same until it is known itself. Above the widest that is
  the size of twice as many tokens, or of `MOST_GROWTH` more; cost is believed to rise there half as fast as before it;
- below the smallest known size cost is believed to fall in proportion;
- what is known is believed less the older it is: after n steps a size may be cheaper by (n / STEPS_OF_TRUST)^2. One
  that loses a share x of a step is so tried every STEPS_OF_TRUST * sqrt(x) steps, once if nothing has changed, and
  loses sqrt(x) / STEPS_OF_TRUST of the time: less than 0.1 %, whatever x is.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from statistics import median

from draftd.pacing.cost_table import CostTable

SIZES: Sequence[int] = (1, 2, 4, *range(8, 64, 8), *range(64, 512, 32), *range(512, 1024, 64), *range(1024, 8193, 256))
TIMES = 31  # that a size keeps
KNOWN = 3  # times that make a size known: the median of fewer may be a pause
MOST_GROWTH = 64  # tokens
CHANGE = 0.1  # of a step's time; noise stays below
STEPS_OF_TRUST = 1500
MOST_HOPE = 0.5  # of a size's cost
FIRST_WIDTH = 8  # tokens, or a quarter more than without drafts: what is taken to be free while nothing is known
STEPS_PER_TABLE = 16  # while no size changes


class CostProfile:
    """The profile of one verifier. The same steps give the same tables."""

    def __init__(self) -> None:
        self.explorations = 0  # steps of a size that was not known
        self._sizes: dict[int, _Size] = {}
        self._step = 0
        self._table: CostTable | None = None

    def observe(self, width: int, micros: float) -> None:
        """A step of `width` tokens, padding not counted, has taken so long. Of wider ones than the largest size nothing
        is learned."""
        if not 1 <= width <= SIZES[-1]:
            return
        self._step += 1
        at = size_above(width)
        size = self._sizes.setdefault(at, _Size())
        doubtful = not size.known or size.hope(self._step) > 0.01
        self.explorations += not size.known
        if size.add(self._step, micros):
            self._became_cheaper(at)
        if doubtful or len(size.times) == KNOWN or self._step % STEPS_PER_TABLE == 0:
            self._table = None

    def table(self, plain: int) -> CostTable:
        """What is believed now. `plain`: tokens of the next step without drafts."""
        if self._table is None:
            self._table = self._believed()
        return self._table or CostTable((min(max(FIRST_WIDTH, plain + plain // 4), 2**32 - 1),), (1.0,))

    def known(self) -> dict[int, float]:
        """Microseconds of the sizes that are known."""
        known = sorted(size for size, seen in self._sizes.items() if seen.known)
        seen = [self._sizes[size] for size in known]
        costs = _never_falling([size.cost for size in seen], [len(size.times) for size in seen])
        return dict(zip(known, costs, strict=True))

    def _became_cheaper(self, at: int) -> None:
        """What is known of other sizes is older than that."""
        for size, seen in self._sizes.items():
            if size < at:
                seen.keep_latest()
        if wider := [size for size, seen in self._sizes.items() if size > at and seen.known]:
            self._sizes[min(wider)].forget()

    def _believed(self) -> CostTable | None:
        """None while no size is known."""
        known = self.known()
        if not known:
            return None
        smallest, widest = min(known), max(known)
        believed = {size: known[smallest] * size / smallest for size in SIZES if size < smallest}
        believed |= {size_above(size + 1): cost for size, cost in known.items() if size < widest}
        if widest < SIZES[-1]:
            grown = size_above(min(2 * widest, widest + MOST_GROWTH))
            believed[grown] = known[widest] + (grown - widest) * _slope(known) / 2
        believed |= {size: cost * (1 - self._sizes[size].hope(self._step)) for size, cost in known.items()}
        sizes = sorted(believed)
        # A longer step that may be cheaper says so of the shorter ones.
        micros = list(accumulate((believed[size] for size in reversed(sizes)), min))
        return CostTable(tuple(sizes), tuple(reversed(micros)))


class _Size:
    """The latest times of one size, with the steps they were measured at."""

    __slots__ = ("cost", "steps", "times")

    def __init__(self) -> None:
        self.steps: deque[int] = deque(maxlen=TIMES)
        self.times: deque[float] = deque(maxlen=TIMES)
        self.cost = 0.0

    @property
    def known(self) -> bool:
        return len(self.times) >= KNOWN

    def add(self, step: int, time: float) -> bool:
        """Whether it was dearer when it was known last."""
        self.steps.append(step)
        self.times.append(time)
        if not self.known:
            return False
        before = self.cost
        if len(self.times) > KNOWN and self._has_changed():
            self.keep_latest()
        self.cost = median(self.times)
        is_news = len(self.times) == KNOWN
        return is_news and self.cost < before * (1 - CHANGE)

    def forget(self) -> None:
        """It is unknown again."""
        self.steps.clear()
        self.times.clear()

    def hope(self, step: int) -> float:
        """The share of its cost that may be gone since it was measured. A time below the median is looked into."""
        cheaper = self.times[-1] < self.cost * (1 - CHANGE)
        age = step - self.steps[-KNOWN if cheaper else -1]
        return min(MOST_HOPE, (age / STEPS_OF_TRUST) ** 2)

    def keep_latest(self) -> None:
        while len(self.times) > KNOWN:
            self.times.popleft()
        while len(self.steps) > KNOWN:
            self.steps.popleft()

    def _has_changed(self) -> bool:
        latest = list(islice(reversed(self.times), KNOWN))
        return max(latest) < self.cost * (1 - CHANGE) or min(latest) > self.cost * (1 + CHANGE)


def size_above(tokens: int) -> int:
    """The first size of at least so many tokens."""
    at = bisect_left(SIZES, tokens)
    return SIZES[at]


def _slope(costs: Mapping[int, float]) -> float:
    """Microseconds for each token, between the two widest sizes; 0 of one size alone."""
    (narrow, less), (wide, more) = [*costs.items()][-2:] if len(costs) > 1 else [(0, 0.0), (1, 0.0)]
    return (more - less) / (wide - narrow)


def _never_falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The never falling sequence with the least weighted squared differences: neighbours that fall are pooled."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for value, weight in zip(values, weights, strict=True):
        mean, total, members = value, weight, 1
        while pools and pools[-1][0] > mean:
            before, more, others = pools.pop()
            mean = (mean * total + before * more) / (total + more)
            total += more
            members += others
        pools.append((mean, total, members))
    return [mean for mean, _, members in pools for _ in range(members)]
