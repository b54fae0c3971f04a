"""SEED's self-distillation: sampled tokens are pulled up where hindsight supports them (paper, section on OPD).

For each sampled response token there are two log-probabilities: under the ordinary context and under the skill context.
Their difference, the gap, says what hindsight makes of the token; the gate makes it a weight in (0, 1). The gradient
on the ordinary log-probability is therefore minus the gate: a token is never pushed down.

Which gap? The skill log-probs are frozen with the policy that sampled. The ordinary ones may be frozen with it ("once per
update": one gate for the whole update) or be the live ones (reference code: the gate follows the policy). It is the caller's
choice of `ordinary_log_probs` in `gap`; at the first optimizer step of an update the two agree.
"""

from __future__ import annotations

from torch import Tensor

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
