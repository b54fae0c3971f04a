import pytest
import torch

from seed_opd.objectives.aggregate import Normalisation, denominator, masked_sum, token_weights

# Three trajectories of 4, 1 and 3 tokens; the second has no usable skill.
TRAJECTORIES = torch.tensor([0, 0, 0, 0, 1, 2, 2, 2])
ACTIVE = torch.tensor([1, 1, 1, 1, 0, 1, 1, 1], dtype=torch.bool)
VALUES = torch.tensor([1.0, 2.0, 3.0, 6.0, 100.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("tokens", 24 / 8),  # 12 + 12 over all tokens
        ("active", 24 / 7),  # over those with a usable skill
        ("trajectories", (12 / 4 + 0 + 12 / 3) / 3),  # mean of the means 3, 0 and 4
    ],
)
def test_hand_numbers(normalisation: Normalisation, expected: float) -> None:
    weights = token_weights(ACTIVE, TRAJECTORIES, normalisation)
    total = masked_sum(VALUES, weights) / denominator(ACTIVE, TRAJECTORIES, normalisation)
    assert float(total) == pytest.approx(expected)


@pytest.mark.parametrize("normalisation", ["tokens", "active", "trajectories"])
def test_micro_batches_do_not_change_the_sum(normalisation: Normalisation) -> None:
    """Cut anywhere, also through a trajectory: weights and denominator are those of the whole step."""
    weights = token_weights(ACTIVE, TRAJECTORIES, normalisation)
    below = denominator(ACTIVE, TRAJECTORIES, normalisation)
    whole = masked_sum(VALUES, weights) / below
    for cut in range(9):
        parts = [masked_sum(VALUES[part], weights[part]) / below for part in (slice(0, cut), slice(cut, None))]
        torch.testing.assert_close(sum(parts), whole)


@pytest.mark.parametrize("normalisation", ["tokens", "active", "trajectories"])
def test_nothing_active_is_nothing_and_no_division_by_zero(normalisation: Normalisation) -> None:
    nothing = torch.zeros(8, dtype=torch.bool)
    total = masked_sum(VALUES, token_weights(nothing, TRAJECTORIES, normalisation))
    assert float(total / denominator(nothing, TRAJECTORIES, normalisation)) == 0.0


def test_a_masked_value_does_not_spoil_the_sum_or_its_gradient() -> None:
    values = torch.tensor([1.0, float("nan"), float("inf")], requires_grad=True)
    total = masked_sum(values, torch.tensor([2.0, 0.0, 0.0]))
    total.backward()
    assert float(total.detach()) == 2.0
    assert values.grad is not None and values.grad.tolist() == [2.0, 0.0, 0.0]


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\(3,\) and weights \(3, 1\)"):
        masked_sum(torch.ones(3), torch.ones(3, 1))
