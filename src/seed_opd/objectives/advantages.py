"""Group-relative advantages: how much better an episode was than the others sampled for the same task.

Two sources, two definitions. The paper compares the trajectories of a task; the reference code compares their step samples,
so that long episodes weigh more. Both are computed in float64: equal returns must give exactly nothing, and a rounding error
divided by eps would not.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-6  # added to the standard deviation (reference code)


def group_relative(
    returns: Tensor, groups: Tensor, *, normalise_std: bool, unbiased: bool = False, eps: float = EPSILON
) -> Tensor:
    """Advantage of each trajectory over its group: A = R - mean, divided by (std + eps) if `normalise_std` (paper, GRPO).

    `returns` (trajectories,), `groups` (trajectories,) the integer task of each trajectory -> (trajectories,).
    The paper takes the population deviation (n); `unbiased` takes the sample deviation (n - 1). A trajectory alone in its
    group has nothing to be compared with: its advantage is 0.
    """
    scores = returns.double()  # (trajectories,)
    mean, std, _ = _group_statistics(scores, groups, unbiased=unbiased)  # each (trajectories,)
    advantages = scores - mean
    return (advantages / (std + eps) if normalise_std else advantages).to(returns.dtype)


def step_sample_relative(
    returns: Tensor, groups: Tensor, steps: Tensor, penalties: Tensor, *, normalise_std: bool, eps: float = EPSILON
) -> Tensor:
    """Advantage of each step sample over all step samples of its task (reference code).

    `returns` (trajectories,), `groups` (trajectories,) the integer task, `steps` (trajectories,) the number of step samples
    of each trajectory, `penalties` (samples,) what each step cost for an invalid action, 0 or positive, in trajectory order
    -> (samples,). The score of a step sample is the return of its episode minus its own penalty; the deviation is the sample
    deviation (n - 1). As in the reference code, a sample alone in its group is taken against mean 0 and deviation 1.
    """
    scores = returns.double().repeat_interleave(steps) - penalties.double()  # (samples,)
    mean, std, counts = _group_statistics(scores, groups.repeat_interleave(steps), unbiased=True)  # each (samples,)
    alone = counts == 1
    advantages = scores - mean.masked_fill(alone, 0.0)
    return (advantages / (std.masked_fill(alone, 1.0) + eps) if normalise_std else advantages).to(returns.dtype)


def _group_statistics(scores: Tensor, groups: Tensor, *, unbiased: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, standard deviation (0 for a group of one) and size of the group of each score; all tensors (scores,)."""
    _, index = groups.unique(return_inverse=True)  # (scores,), groups numbered from 0
    counts = torch.bincount(index)  # (groups,)
    mean = _sum_by(index, scores, counts) / counts  # (groups,)
    squares = _sum_by(index, (scores - mean[index]) ** 2, counts)  # (groups,)
    variance = squares / (counts - 1 if unbiased else counts).clamp(min=1)  # (groups,)
    return mean[index], variance.sqrt()[index], counts[index]


def _sum_by(index: Tensor, values: Tensor, counts: Tensor) -> Tensor:
    return torch.zeros(len(counts), dtype=values.dtype, device=values.device).index_add_(0, index, values)


def discounted_returns(rewards: Tensor, steps: Tensor, discount: float) -> Tensor:
    """Return from each step on: G_t = r_t + discount G_(t+1): (samples,), with (trajectories,) steps each -> (samples,)."""
    parts = []
    for part in rewards.split(steps.tolist()):
        powers = discount ** torch.arange(len(part), dtype=part.dtype, device=part.device)  # (steps,)
        later = (part * powers).flip(0).cumsum(0).flip(0)  # (steps,), discounted to the first step
        parts.append(later / powers)
    return torch.cat(parts)
