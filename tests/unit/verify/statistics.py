"""Is a sample from the distribution that it should be from? Two tests, with limits that a right one passes but for one
time in a million."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping

ONE_IN_A_MILLION = 1e-6
NORMAL_QUANTILE = 4.7534  # of 1 - ONE_IN_A_MILLION
LEAST_EXPECTED = 5.0  # rarer outcomes are one outcome together: the chi-square distribution holds for frequent ones


def chi_square(counts: Counter[Hashable], wanted: Mapping[Hashable, float]) -> tuple[float, float]:
    """Pearson's statistic and its limit: the quantile, by the approximation of Wilson and Hilferty."""
    total = counts.total()
    rare = {outcome for outcome, probability in wanted.items() if total * probability < LEAST_EXPECTED}
    pairs = [(counts[it], total * probability) for it, probability in wanted.items() if it not in rare]
    if rare:
        pairs.append((sum(counts[it] for it in rare), total * sum(wanted[it] for it in rare)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in pairs)
    freedom = len(pairs) - 1
    spread = 2.0 / (9.0 * freedom)
    return statistic, freedom * (1.0 - spread + NORMAL_QUANTILE * math.sqrt(spread)) ** 3


def total_variation(counts: Counter[Hashable], wanted: Mapping[Hashable, float]) -> tuple[float, float]:
    """The distance and its limit: the bound of its mean, and by McDiarmid's inequality how far it is from that."""
    total = counts.total()
    distance = sum(abs(counts[it] / total - probability) for it, probability in wanted.items()) / 2
    mean = math.sqrt(len(wanted) / total) / 2
    return distance, mean + math.sqrt(-math.log(ONE_IN_A_MILLION) / (2 * total))
