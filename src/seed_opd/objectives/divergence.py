"""Distance of the policy from its reference, estimated on the sampled tokens."""

from __future__ import annotations

from torch import Tensor

MAX_LOG_RATIO = 20.0  # keeps exp and its gradient finite


def k3(log_probs: Tensor, reference_log_probs: Tensor, clamp: float = 10.0) -> Tensor:
    """The k3 estimate of KL(policy || reference) of each token: exp(d) - d - 1, d = reference - live (Schulman 2020).

    `log_probs` live, `reference_log_probs` frozen: (tokens,), (tokens,) -> (tokens,), never negative.
    A token costs at most `clamp` and has no gradient beyond it (10: the verl stack that the reference code builds on).
    """
    difference = (reference_log_probs.detach() - log_probs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)  # (tokens,)
    return (difference.exp() - difference - 1).clamp(max=clamp)
