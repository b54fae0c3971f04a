import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.objectives.shaping import added, decayed, modulated


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_added_by_hand() -> None:
    """2 + 0.001 * 3 = 2.003; -1 + 0.001 * -2 = -1.002; and where the outcome says nothing, the gap alone."""
    torch.testing.assert_close(added(vector(2, -1, 0), vector(3, -2, 4), 0.001), vector(2.003, -1.002, 0.004))


def test_modulated_by_hand() -> None:
    """Strength 1/2, clip 0.2, gap log 1.1.

    A = 2: 2 * (1/2 + 1/2 * 1.1) = 2.1. A = -2: exp(-gap) = 1 / 1.1, -2 * (1/2 + 1/2 / 1.1). A = 2, gap 5: the factor is
    clipped to 1.2, 2 * 1.1 = 2.2; gap -5: to 0.8, 2 * 0.9 = 1.8. A = 0 stays 0.
    """
    gap = vector(math.log(1.1), math.log(1.1), 5, -5, 5)
    expected = vector(2.1, -2 * (0.5 + 0.5 / 1.1), 2.2, 1.8, 0)
    torch.testing.assert_close(modulated(vector(2, -2, 2, 2, 0), gap, 0.5), expected)


@given(st.floats(-10, 10), st.floats(-30, 30), st.floats(0, 1))
def test_modulation_keeps_the_sign_and_stays_near(advantage: float, gap: float, strength: float) -> None:
    result = float(modulated(vector(advantage), vector(gap), strength))
    low, high = sorted((0.8 * advantage, 1.2 * advantage))
    assert low - 1e-9 <= result <= high + 1e-9


def test_without_strength_or_gap_nothing_changes() -> None:
    advantages, gap = vector(1, -2, 0.5), vector(1, 2, -3)
    assert torch.equal(modulated(advantages, gap, 0.0), advantages)
    torch.testing.assert_close(modulated(advantages, torch.zeros(3, dtype=torch.float64), 0.5), advantages)


def test_no_gradient_comes_through_the_gap() -> None:
    gap = vector(1, -1).requires_grad_()
    assert not added(vector(1, 1), gap, 0.1).requires_grad
    assert not modulated(vector(1, 1), gap, 0.5).requires_grad


def test_a_strength_decays_to_nothing_in_a_line() -> None:
    assert [decayed(0.5, update, 4) for update in (1, 2, 3, 4, 5, 9)] == pytest.approx([0.5, 0.375, 0.25, 0.125, 0, 0])
