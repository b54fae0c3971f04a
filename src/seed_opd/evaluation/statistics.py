"""How sure we are of a success rate: intervals in closed form, so that the same counts always give the same numbers.

All intervals are two-sided. None collapses to a point at 0% or 100%, where the usual normal approximation does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Count:
    """Successes among the episodes of one category."""

    successes: int
    episodes: int


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval about it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Second run minus first on the same tasks: success rates, interval, and how often each alone succeeded."""

    difference: Interval
    only_first: int
    only_second: int
    tasks: int
    p_value: float


def wilson(successes: int, episodes: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a proportion (Wilson 1927). Raises ValueError without episodes."""
    if not 0 <= successes <= episodes or episodes == 0:
        raise ValueError(
            f"{successes} successes in {episodes} episodes: episodes must be positive and not fewer than successes"
        )
    z = _z(confidence)
    rate = successes / episodes
    centre = (rate + z * z / (2 * episodes)) / (1 + z * z / episodes)
    half = z / (1 + z * z / episodes) * math.sqrt(rate * (1 - rate) / episodes + z * z / (4 * episodes**2))
    low = 0.0 if successes == 0 else centre - half  # exactly, where rounding would leave 1e-18
    high = 1.0 if successes == episodes else centre + half
    return Interval(rate, low, high)


def micro(counts: Mapping[str, Count], confidence: float = CONFIDENCE) -> Interval:
    """Success over all episodes, every episode alike, with Wilson's interval."""
    return wilson(
        sum(count.successes for count in counts.values()), sum(count.episodes for count in counts.values()), confidence
    )


def macro(counts: Mapping[str, Count], confidence: float = CONFIDENCE) -> Interval:
    """Mean of the categories' success rates, every category alike; categories without episodes are left out.

    The interval joins the categories' Wilson intervals by square-and-add (Zou, Huang and Zhang 2009, linear function of
    binomial proportions): the distances to the low ends, and to the high ends, add up as independent deviations do.
    """
    rates = [wilson(count.successes, count.episodes, confidence) for count in counts.values() if count.episodes]
    if not rates:
        raise ValueError("no category has an episode")
    value = fmean(rate.value for rate in rates)
    below = math.hypot(*(rate.value - rate.low for rate in rates)) / len(rates)
    above = math.hypot(*(rate.high - rate.value for rate in rates)) / len(rates)
    return Interval(value, value - below, value + above)


def paired_difference(first: Sequence[bool], second: Sequence[bool], confidence: float = CONFIDENCE) -> PairedDifference:
    """Compare two runs on the same tasks in the same order, by the tasks on which only one of them succeeded.

    Interval: Wald's with half a task added to each of the four cells (Agresti and Min 2005). p-value: exact two-sided
    McNemar test. Raises ValueError if the runs differ in length or are empty.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} tasks: both runs need the same tasks, at least one")
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    tasks = len(first)
    total = tasks + 2
    centre = (only_second - only_first) / total
    half = _z(confidence) * math.sqrt((only_first + only_second + 1) / total - centre**2) / math.sqrt(total)
    difference = Interval((only_second - only_first) / tasks, max(-1.0, centre - half), min(1.0, centre + half))
    return PairedDifference(difference, only_first, only_second, tasks, _mcnemar(only_first, only_second))


def mean_over_seeds(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean over independent seeds with Student's t-interval. Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError(f"{len(values)} values: an interval over seeds needs at least two")
    mean = fmean(values)
    half = _t_quantile(len(values) - 1, (1 + confidence) / 2) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided binomial test that a task won by one run alone falls to either with probability one half."""
    discordant = only_first + only_second
    tail = sum(math.comb(discordant, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**discordant)


def _t_quantile(degrees: int, probability: float) -> float:
    """Quantile above one half of Student's t, by bisection."""
    low, high = 0.0, 1.0
    while _t_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def _t_cdf(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0 and whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term = math.cos(theta) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= k / (k + 1) * math.cos(theta) ** 2
    inside = 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
    return 0.5 + inside / 2
