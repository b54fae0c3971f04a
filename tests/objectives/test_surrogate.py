import math

import torch
from differences import autograd, central

from seed_opd.objectives.surrogate import clipped_away, clipped_surrogate


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


OLD = vector(-1.0, -1.0, -1.0, -1.0, -1.0, -1.0)
RATIO = vector(1.0, 1.5, 0.5, 0.5, 1.5, 5.0)
ADVANTAGES = vector(2.0, 2.0, 2.0, -2.0, -2.0, -2.0)
LIVE = OLD + RATIO.log()


def test_hand_numbers() -> None:
    """Clip 0.2 gives [0.8, 1.2]; -A r against -A clip(r), the larger:

    A = 2:  r 1.0 -> -2;  r 1.5 -> max(-3, -2.4) = -2.4 (clipped);  r 0.5 -> max(-1, -1.6) = -1.
    A = -2: r 0.5 -> max(1, 1.6) = 1.6 (clipped);  r 1.5 -> max(3, 2.4) = 3;  r 5 -> 10, but at most 2 * 3 = 6 (dual clip).
    """
    torch.testing.assert_close(clipped_surrogate(LIVE, OLD, ADVANTAGES), vector(-2, -2.4, -1, 1.6, 3, 6))
    without = clipped_surrogate(LIVE, OLD, ADVANTAGES, dual_clip=None)
    torch.testing.assert_close(without, vector(-2, -2.4, -1, 1.6, 3, 10))


def test_clip_sides_are_separate() -> None:
    """Low 0.4, high 0.6 gives [0.6, 1.6]: r 1.5 is inside, -3; r 0.5 with A -2 is clipped to 0.6, 1.2."""
    loss = clipped_surrogate(LIVE, OLD, ADVANTAGES, clip_low=0.4, clip_high=0.6)
    torch.testing.assert_close(loss[[1, 3]], vector(-3, 1.2))


def test_gradient() -> None:
    """d/dlogp (-A r) = -A r where nothing is clipped, 0 where something is."""

    def loss(log_probs: torch.Tensor) -> torch.Tensor:
        return clipped_surrogate(log_probs, OLD, ADVANTAGES)

    torch.testing.assert_close(autograd(loss, LIVE), vector(-2, 0, -1, 0, 3, 0))
    torch.testing.assert_close(autograd(loss, LIVE), central(loss, LIVE), atol=1e-6, rtol=1e-6)


def test_first_step_is_the_policy_gradient() -> None:
    """At r = 1 the gradient on every log-prob is minus its advantage."""
    gradient = autograd(lambda log_probs: clipped_surrogate(log_probs, OLD, ADVANTAGES), OLD)
    torch.testing.assert_close(gradient, -ADVANTAGES)


def test_extreme_ratio_stays_finite() -> None:
    for live in (vector(0.0), vector(-1000.0)):
        for advantage in (vector(1.0), vector(-1.0)):
            loss, old = (lambda x, a=advantage, o=-1000.0 - live: clipped_surrogate(x, o, a)), -1000.0 - live
            assert math.isfinite(float(clipped_surrogate(live, old, advantage)))
            assert math.isfinite(float(autograd(loss, live)))


def test_what_was_clipped_away() -> None:
    """r 1.5 with A > 0, r 0.5 with A < 0 and, by the dual clip, r 5 with A < 0; the gradient is 0 just there."""
    away = clipped_away(LIVE, OLD, ADVANTAGES)
    assert away.tolist() == [False, True, False, True, False, True]
    assert (away == (autograd(lambda x: clipped_surrogate(x, OLD, ADVANTAGES), LIVE) == 0)).all()
    assert clipped_away(LIVE, OLD, ADVANTAGES, dual_clip=None).tolist() == [False, True, False, True, False, False]
