import math

import torch
from differences import autograd, central

from seed_opd.objectives.distillation import distillation_loss, gap, sigmoid_gate


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


ORDINARY = vector(-1.0, -2.0, -0.5)
SKILL = ORDINARY + vector(math.log(3) / 5, 0.0, -math.log(3) / 5)


def test_hand_numbers() -> None:
    """beta 5 and gap log(3) / 5: sigmoid(log 3) = 3 / 4; gap 0: 1 / 2; gap -log(3) / 5: 1 / 4. Loss = gate * gap."""
    gate = sigmoid_gate(gap(SKILL, ORDINARY))
    torch.testing.assert_close(gate, vector(0.75, 0.5, 0.25))
    expected = vector(0.75 * math.log(3) / 5, 0, -0.25 * math.log(3) / 5)
    torch.testing.assert_close(distillation_loss(ORDINARY, SKILL, gate), expected)


def test_gradient_is_minus_the_gate() -> None:
    """The gate and the skill log-probs are constants: nothing but -gate is left, positive gap or negative."""

    def live_gap(log_probs: torch.Tensor) -> torch.Tensor:
        return distillation_loss(log_probs, SKILL, sigmoid_gate(gap(SKILL, log_probs)))

    torch.testing.assert_close(autograd(live_gap, ORDINARY), vector(-0.75, -0.5, -0.25))
    gate = sigmoid_gate(gap(SKILL, ORDINARY))
    numeric = central(lambda log_probs: distillation_loss(log_probs, SKILL, gate), ORDINARY)
    torch.testing.assert_close(numeric, vector(-0.75, -0.5, -0.25), atol=1e-8, rtol=0)


def test_no_gradient_reaches_the_skill_context() -> None:
    skill, ordinary = SKILL.clone().requires_grad_(), ORDINARY.clone().requires_grad_()
    distillation_loss(ordinary, skill, sigmoid_gate(gap(skill, ordinary))).sum().backward()
    assert skill.grad is None and ordinary.grad is not None
    assert not gap(skill, ordinary).requires_grad


def test_frozen_and_live_gap_part_after_the_first_step() -> None:
    """After the policy moved up by log(3) / 5 on the first token, the live gap there is 0, the frozen one is as it was."""
    moved = ORDINARY + vector(math.log(3) / 5, 0, 0)
    frozen = autograd(lambda x: distillation_loss(x, SKILL, sigmoid_gate(gap(SKILL, ORDINARY))), moved)
    live = autograd(lambda x: distillation_loss(x, SKILL, sigmoid_gate(gap(SKILL, x))), moved)
    torch.testing.assert_close(frozen, vector(-0.75, -0.5, -0.25))
    torch.testing.assert_close(live, vector(-0.5, -0.5, -0.25))


def test_beta_nought_is_the_uniform_gate() -> None:
    torch.testing.assert_close(sigmoid_gate(vector(-3, 0, 3), beta=0), vector(0.5, 0.5, 0.5))
