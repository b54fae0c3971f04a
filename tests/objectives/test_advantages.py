import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.objectives.advantages import discounted_returns, group_relative, step_sample_relative


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


RETURNS = vector(10, 0, 0, 0, 4, 2)
GROUPS = torch.tensor([7, 7, 7, 7, 3, 3])


def test_group_relative_population_deviation() -> None:
    """Task 7: mean 2.5, squares (56.25 + 3 * 6.25) / 4 = 18.75. Task 3: mean 3, deviation 1."""
    std = math.sqrt(18.75) + 1e-6
    expected = vector(7.5 / std, -2.5 / std, -2.5 / std, -2.5 / std, 1 / (1 + 1e-6), -1 / (1 + 1e-6))
    torch.testing.assert_close(group_relative(RETURNS, GROUPS, normalise_std=True), expected)


def test_group_relative_sample_deviation() -> None:
    """The same squares over n - 1: 75 / 3 = 25, so deviation 5; task 3: 2 / 1, so the root of 2."""
    root = math.sqrt(2) + 1e-6
    expected = vector(7.5 / 5.000001, *[-2.5 / 5.000001] * 3, 1 / root, -1 / root)
    torch.testing.assert_close(group_relative(RETURNS, GROUPS, normalise_std=True, unbiased=True), expected)


def test_group_relative_without_deviation() -> None:
    torch.testing.assert_close(group_relative(RETURNS, GROUPS, normalise_std=False), vector(7.5, -2.5, -2.5, -2.5, 1, -1))


@pytest.mark.parametrize("unbiased", [False, True])
def test_equal_returns_and_a_lone_trajectory_give_exactly_nothing(unbiased: bool) -> None:
    """0.1 is not a float32 number: a mean in float32 would be off by 1e-8, which eps 1e-6 would turn into 0.01."""
    returns, groups = torch.full((8,), 0.1), torch.tensor([0] * 7 + [1])
    advantages = group_relative(returns, groups, normalise_std=True, unbiased=unbiased)
    assert advantages.dtype == torch.float32
    torch.testing.assert_close(advantages, torch.zeros(8), atol=1e-9, rtol=0)


def test_step_samples_weigh_long_episodes_more() -> None:
    """Task 0: return 10 in 1 step, return 0 in 3 steps, the last of them invalid (0.1).

    Scores 10, 0, 0, -0.1: mean 2.475, squared deviations 56.625625 + 2 * 6.125625 + 6.630625 = 75.5075, over n - 1 = 3:
    variance 25.169166..., deviation 5.016888...
    """
    arguments = (vector(10, 0), torch.tensor([0, 0]), torch.tensor([1, 3]), vector(0, 0, 0, 0.1))
    plain = vector(7.525, -2.475, -2.475, -2.575)
    torch.testing.assert_close(step_sample_relative(*arguments, normalise_std=False), plain)
    std = math.sqrt(75.5075 / 3) + 1e-6
    torch.testing.assert_close(step_sample_relative(*arguments, normalise_std=True), plain / std)


def test_a_lone_step_sample_keeps_its_score() -> None:
    """Reference code: mean 0 and deviation 1 for a group of one, so 3 - 0.5 = 2.5, divided by 1 + 1e-6."""
    arguments = (vector(3), torch.tensor([5]), torch.tensor([1]), vector(0.5))
    torch.testing.assert_close(step_sample_relative(*arguments, normalise_std=False), vector(2.5))
    torch.testing.assert_close(step_sample_relative(*arguments, normalise_std=True), vector(2.5 / (1 + 1e-6)))


def test_one_step_per_trajectory_is_the_trajectory_advantage() -> None:
    ones, nothing = torch.ones(6, dtype=torch.int64), torch.zeros(6, dtype=torch.float64)
    torch.testing.assert_close(
        step_sample_relative(RETURNS, GROUPS, ones, nothing, normalise_std=True),
        group_relative(RETURNS, GROUPS, normalise_std=True, unbiased=True),
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-10, 10)), min_size=1, max_size=30))
def test_advantages_of_a_group_sum_to_nothing(rows: list[tuple[int, float]]) -> None:
    groups, returns = torch.tensor([row[0] for row in rows]), vector(*[row[1] for row in rows])
    advantages = group_relative(returns, groups, normalise_std=False)
    for group in groups.unique():
        assert abs(float(advantages[groups == group].sum())) < 1e-9


def test_discounted_returns_by_hand() -> None:
    """Two episodes, discount 1/2: rewards 0, 0, 4 give 1, 2, 4; rewards 2, -4 give 0, -4. They stay apart."""
    rewards = torch.tensor([0.0, 0.0, 4.0, 2.0, -4.0], dtype=torch.float64)
    returns = discounted_returns(rewards, torch.tensor([3, 2]), 0.5)
    torch.testing.assert_close(returns, torch.tensor([1.0, 2.0, 4.0, 0.0, -4.0], dtype=torch.float64))
