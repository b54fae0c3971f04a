import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.evaluation.statistics import Count, macro, mean_over_seeds, micro, paired_difference, wilson


def test_wilson_hand_numbers() -> None:
    """8 of 10: z^2 = 3.841459. Centre (0.8 + 0.192073) / 1.384146 = 0.716740;

    half = 1.959964 / 1.384146 * sqrt(0.016 + 0.009604) = 1.416009 * 0.160012 = 0.226578.
    """
    interval = wilson(8, 10)
    assert interval.value == 0.8
    assert interval.low == pytest.approx(0.490162, abs=2e-6)
    assert interval.high == pytest.approx(0.943318, abs=2e-6)


def test_wilson_at_the_ends() -> None:
    """0 of n: the high end is z^2 / (n + z^2), 3.841459 / 13.841459 = 0.277533 for n = 10; n of n mirrors it."""
    assert (wilson(0, 10).low, wilson(10, 10).high) == (0.0, 1.0)
    assert wilson(0, 10).high == pytest.approx(0.277533, abs=1e-6)
    assert wilson(10, 10).low == pytest.approx(1 - 0.277533, abs=1e-6)


@given(st.integers(1, 500), st.integers(0, 500))
def test_wilson_holds_the_rate_and_mirrors(episodes: int, successes: int) -> None:
    successes = min(successes, episodes)
    interval, mirror = wilson(successes, episodes), wilson(episodes - successes, episodes)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.low < interval.high
    assert interval.low == pytest.approx(1 - mirror.high, abs=1e-12)


@pytest.mark.parametrize(("successes", "episodes"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(successes: int, episodes: int) -> None:
    with pytest.raises(ValueError, match="episodes must be positive"):
        wilson(successes, episodes)


COUNTS = {"pick": Count(9, 10), "look": Count(1, 2), "heat": Count(0, 4), "never drawn": Count(0, 0)}


def test_micro_pools_and_macro_averages() -> None:
    """10 of 16 against (0.9 + 0.5 + 0) / 3."""
    assert micro(COUNTS).value == 10 / 16
    assert micro(COUNTS) == wilson(10, 16)
    assert macro(COUNTS).value == pytest.approx(1.4 / 3)


def test_macro_interval_squares_and_adds() -> None:
    """Two categories alike, 8 of 10: distances 0.309838 and 0.143318, each times sqrt(2) / 2."""
    interval = macro({"a": Count(8, 10), "b": Count(8, 10)})
    assert interval.value - interval.low == pytest.approx(0.309838 / math.sqrt(2), abs=2e-6)
    assert interval.high - interval.value == pytest.approx(0.143318 / math.sqrt(2), abs=2e-6)


def test_macro_of_one_category_is_wilson() -> None:
    one, whole = macro({"a": Count(8, 10)}), wilson(8, 10)
    assert (one.value, one.low, one.high) == pytest.approx((whole.value, whole.low, whole.high))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=6))
def test_macro_stays_between_nothing_and_all(rows: list[tuple[int, int]]) -> None:
    interval = macro({str(i): Count(min(won, played), played) for i, (played, won) in enumerate(rows)})
    assert -1e-12 <= interval.low < interval.high <= 1 + 1e-12


def test_paired_difference_hand_numbers() -> None:
    """10 tasks: both win 4, only the first 1, only the second 3, none 2.

    McNemar: 2 * (C(4,0) + C(4,1)) / 2^4 = 0.625. Agresti-Min: centre 2 / 12 = 0.166667,
    variance (5 / 12 - 0.027778) / 12 = 0.032407, half 1.959964 * 0.180020 = 0.352833.
    """
    first = [True] * 5 + [False] * 5
    second = [True] * 4 + [False] + [True] * 3 + [False] * 2
    result = paired_difference(first, second)
    assert (result.only_first, result.only_second, result.tasks) == (1, 3, 10)
    assert result.difference.value == 0.2
    assert result.p_value == 0.625
    assert result.difference.low == pytest.approx(0.166667 - 0.352833, abs=2e-6)
    assert result.difference.high == pytest.approx(0.166667 + 0.352833, abs=2e-6)


def test_paired_difference_of_equal_runs_is_not_certainty() -> None:
    result = paired_difference([True, False], [True, False])
    assert result.difference.value == 0.0 and result.p_value == 1.0
    assert result.difference.low < 0 < result.difference.high


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_paired_difference_mirrors(rows: list[tuple[bool, bool]]) -> None:
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    forth, back = paired_difference(first, second), paired_difference(second, first)
    assert forth.p_value == back.p_value
    assert forth.difference.low == pytest.approx(-back.difference.high)


def test_paired_difference_needs_the_same_tasks() -> None:
    with pytest.raises(ValueError, match="2 and 1 tasks"):
        paired_difference([True, False], [True])


@pytest.mark.parametrize(
    ("values", "quantile"),
    [([0, 1], 12.7062), ([0, 1, 2], 4.3027), ([0, 1, 2, 3], 3.1824), ([0, 1, 2, 3, 4], 2.7764), (list(range(11)), 2.2281)],
)
def test_mean_over_seeds_uses_the_t_table(values: list[float], quantile: float) -> None:
    """The 97.5% quantiles of Student's t for 1, 2, 3, 4 and 10 degrees of freedom, as in any table."""
    interval = mean_over_seeds(values)
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    assert interval.value == pytest.approx(mean)
    assert (interval.high - interval.value) / spread == pytest.approx(quantile, abs=1e-4)
    assert interval.value - interval.low == pytest.approx(interval.high - interval.value)


def test_mean_over_one_seed_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least two"):
        mean_over_seeds([0.5])


def test_other_confidence() -> None:
    """At 90% z is 1.644854, and 0 of 10 ends at z^2 / (10 + z^2) = 2.705543 / 12.705543."""
    assert wilson(0, 10, confidence=0.9).high == pytest.approx(2.705543 / 12.705543, abs=1e-6)
