"""SEED's self-distillation: sampled tokens are pulled up where hindsight supports them (paper, section on OPD).

For each sampled response token there are two log-probabilities: under the ordinary context and under the skill context.
Their difference, the gap, says what hindsight makes of the token; the gate makes it a weight in (0, 1). The gradient
on the ordinary log-probability is therefore minus the gate: a token is never pushed down.

Which gap? The skill log-probs are frozen with the policy that sampled. The ordinary ones may be frozen with it ("once per
update": one gate for the whole update) or be the live ones (reference code: the gate follows the policy). It is the caller's
choice of `ordinary_log_probs` in `gap`; at the first optimizer step of an update the two agree.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seed_opd.objectives.surrogate import clipped_surrogate

BETA = 5.0  # steepness of the gate, per nat (paper and reference code)


def gap(skill_log_probs: Tensor, ordinary_log_probs: Tensor) -> Tensor:
    """Skill minus ordinary log-probability of each token, in nats, without a gradient: (tokens,), (tokens,) -> (tokens,)."""
    return (skill_log_probs - ordinary_log_probs).detach()


def sigmoid_gate(gap: Tensor, beta: float = BETA) -> Tensor:
    """g = sigmoid(beta * gap), without a gradient: (tokens,) -> (tokens,). `beta` 0 is the uniform gate of one half."""
    return (beta * gap).sigmoid().detach()


def distillation_loss(log_probs: Tensor, skill_log_probs: Tensor, gate: Tensor) -> Tensor:
    """Loss of each token: gate * (skill - ordinary), where only the live ordinary `log_probs` carry a gradient.

    All tensors (tokens,). Tokens without a usable skill are left out by their weight, see `aggregate`.
    """
    return gate.detach() * (skill_log_probs.detach() - log_probs)


def importance_k3_loss(log_probs: Tensor, skill_log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """Loss of each token: rho * k3, the distance to the skill context (Skill-SD, arXiv 2604.10674).

    k3 = exp(-l) - 1 + l with l = live - skill, held in [-20, 20]; rho = exp(live - old), at most 10, weighs tokens that the
    live policy makes more likely than the one that sampled. All tensors (tokens,); both factors carry a gradient.
    """
    difference = (log_probs - skill_log_probs.detach()).clamp(-20.0, 20.0)  # (tokens,)
    k3 = (-difference).exp() - 1 + difference  # (tokens,)
    ratio = (log_probs - old_log_probs.detach()).clamp(max=math.log(10.0)).exp()  # (tokens,)
    return ratio * k3


def signed_loss(log_probs: Tensor, old_log_probs: Tensor, gap: Tensor, beta: float = BETA, clip: float = 0.2) -> Tensor:
    """Loss of each token: the clipped surrogate with the advantage tanh(beta * gap / 2), which lies in (-1, 1) (ours).

    A token is pushed up where hindsight supports it and down where hindsight speaks against it; without a gap it is left
    alone. 1 + tanh(x / 2) = 2 sigmoid(x), so this is twice SEED's gate, moved down by one. All tensors (tokens,).
    """
    signal = torch.tanh(beta * gap.detach() / 2)  # (tokens,)
    return clipped_surrogate(log_probs, old_log_probs, signal, clip_low=clip, clip_high=clip)
