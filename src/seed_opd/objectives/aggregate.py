"""From losses per token to one number, with a denominator that no micro-batch can change.

For one optimizer step, over all its tokens: weights and a denominator for each component, once. Then every micro-batch
adds `masked_sum(loss, weights) / denominator`, and the sum is the same however the step is cut. Denominators of several
processes add up, as long as each trajectory lies whole in one of them. (The reference code's mean inside a micro-batch is
"active", computed for the micro-batch alone.)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Normalisation = Literal["tokens", "active", "trajectories"]


def masked_sum(values: Tensor, weights: Tensor) -> Tensor:
    """Sum of values * weights: (tokens,), (tokens,) -> (). A value whose weight is 0 does not count, even if not finite.

    Raises ValueError if the shapes differ, which would otherwise broadcast to a wrong sum.
    """
    if values.shape != weights.shape:
        raise ValueError(f"values {tuple(values.shape)} and weights {tuple(weights.shape)} must have the same shape")
    return (values.masked_fill(weights == 0, 0.0) * weights).sum()


def token_weights(active: Tensor, trajectories: Tensor, normalisation: Normalisation) -> Tensor:
    """Weight of each token in the sum of a component: (tokens,) bool, (tokens,) int -> (tokens,) float32.

    `active` marks the tokens the component acts on (for distillation: those with a usable skill), `trajectories` the number
    of each token's trajectory. The weight is 1 for an active token; for "trajectories", 1 / tokens of its trajectory.
    """
    if normalisation != "trajectories":
        return active.float()
    _, index, counts = trajectories.unique(return_inverse=True, return_counts=True)
    return active.float() / counts[index]


def denominator(active: Tensor, trajectories: Tensor, normalisation: Normalisation) -> Tensor:
    """What the weighted sum is divided by, at least 1: (tokens,) bool, (tokens,) int -> () float32.

    "tokens": all response tokens, so that a skill lost does not strengthen the others;
    "active": tokens with a usable skill (reference code);
    "trajectories": all trajectories, so that every episode counts the same, short or long.
    """
    count = {
        "tokens": active.numel(),
        "active": int(active.sum()),
        "trajectories": trajectories.unique().numel(),
    }[normalisation]
    return torch.tensor(float(max(count, 1)))
