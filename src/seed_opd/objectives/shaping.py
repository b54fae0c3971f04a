"""The gap as a part of the advantage: hindsight changes how much an episode's outcome counts for a token."""

from __future__ import annotations

from torch import Tensor


def added(advantages: Tensor, gap: Tensor, weight: float) -> Tensor:
    """A + weight * gap, signed and unbounded (OPID, arXiv 2606.26790): all tensors (tokens,), without a gradient.

    Its reference code takes weight 0.001 for episode and for step skills, and does not normalise the gap.
    """
    return advantages + weight * gap.detach()


def modulated(advantages: Tensor, gap: Tensor, strength: float, clip_low: float = 0.2, clip_high: float = 0.2) -> Tensor:
    """A * ((1 - s) + s * clip(exp(sign(A) * gap), 1 - low, 1 + high)), s the strength (RLSD, arXiv 2604.03128).

    All tensors (tokens,), without a gradient. The sign of an advantage never changes; where it is 0, it stays 0.
    """
    factor = (advantages.sign() * gap.detach()).exp().clamp(1 - clip_low, 1 + clip_high)  # (tokens,)
    return advantages * ((1 - strength) + strength * factor)


def decayed(strength: float, update: int, updates: int) -> float:
    """A strength that falls linearly from its value at the first update to 0 after so many of them (RLSD)."""
    return strength * max(0.0, 1.0 - (update - 1) / updates)
