import math

import torch
from differences import autograd, central

from seed_opd.objectives.divergence import k3


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_hand_numbers() -> None:
    """d = reference - live: 0 -> 0; log 2 -> 2 - log 2 - 1; -log 2 -> 0.5 + log 2 - 1; 3 -> e^3 - 4 = 16.1, at most 10."""
    live = vector(-1, -1, -1, -1)
    reference = live + vector(0, math.log(2), -math.log(2), 3)
    torch.testing.assert_close(k3(live, reference), vector(0, 1 - math.log(2), math.log(2) - 0.5, 10))
    torch.testing.assert_close(k3(live, reference, clamp=20)[3], torch.tensor(math.exp(3) - 4, dtype=torch.float64))


def test_gradient() -> None:
    """d/dlive (e^d - d - 1) = 1 - e^d: pulled back towards the reference from both sides, and nothing beyond the clamp."""
    reference = vector(-1, -2, -3, -1)
    live = reference - vector(0.0, 0.5, -0.5, 3)
    gradient = autograd(lambda x: k3(x, reference), live)
    torch.testing.assert_close(gradient, vector(0, 1 - math.exp(0.5), 1 - math.exp(-0.5), 0))
    torch.testing.assert_close(gradient, central(lambda x: k3(x, reference), live), atol=1e-6, rtol=1e-6)


def test_only_the_live_log_probs_carry_a_gradient() -> None:
    reference = vector(-1).requires_grad_()
    assert not k3(vector(-2), reference).requires_grad


def test_extreme_difference_stays_finite() -> None:
    for live in (vector(0), vector(-1000)):
        gradient = autograd(lambda x, r=-1000 - live: k3(x, r), live)
        assert math.isfinite(float(gradient))
