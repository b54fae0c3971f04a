import math

import torch
from differences import autograd, central

from seed_opd.objectives.distillation import distillation_loss, gap, importance_k3_loss, sigmoid_gate, signed_loss


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


def test_importance_k3_by_hand() -> None:
    """Live and skill differ by log 2: k3 = 1/2 - 1 + log 2; live and old by log 3: rho = 3; and a rho that is held at 10."""
    live = vector(-1.0, -1.0)
    skill = live - math.log(2)
    old = live - vector(math.log(3), 5.0)
    k3 = 0.5 - 1 + math.log(2)
    torch.testing.assert_close(importance_k3_loss(live, skill, old), vector(3 * k3, 10 * k3))


def test_importance_k3_has_the_gradient_of_both_factors() -> None:
    """d/dl rho (e^-l - 1 + l) = rho (e^-l - 1 + l) + rho (1 - e^-l): at l = log 2 and rho = 3, 3 (log 2 - 1/2) + 3 / 2."""
    old = ORDINARY - math.log(3)

    def loss(log_probs: torch.Tensor) -> torch.Tensor:
        return importance_k3_loss(log_probs, ORDINARY - math.log(2), old)

    torch.testing.assert_close(autograd(loss, ORDINARY), torch.full((3,), 3 * math.log(2), dtype=torch.float64))
    torch.testing.assert_close(central(loss, ORDINARY), autograd(loss, ORDINARY), atol=1e-7, rtol=0)


def test_the_signed_loss_by_hand() -> None:
    """Gap log(3) / 5: tanh(log(3) / 2) = (3 - 1) / (3 + 1) = 1/2. At ratio 1 the loss is minus the signal."""
    gaps = vector(math.log(3) / 5, 0.0, -math.log(3) / 5)
    torch.testing.assert_close(signed_loss(ORDINARY, ORDINARY, gaps), vector(-0.5, 0.0, 0.5))
    torch.testing.assert_close(autograd(lambda x: signed_loss(x, ORDINARY, gaps), ORDINARY), vector(-0.5, 0.0, 0.5))
    numeric = central(lambda x: signed_loss(x, ORDINARY, gaps), ORDINARY + 0.05)
    torch.testing.assert_close(
        numeric, autograd(lambda x: signed_loss(x, ORDINARY, gaps), ORDINARY + 0.05), atol=1e-7, rtol=0
    )


def test_the_signed_loss_lets_go_of_a_token_that_has_moved_far_enough() -> None:
    """Ratio 1.5 with a positive signal and 0.5 with a negative one lie outside 1 +- 0.2: no gradient is left."""
    moved = ORDINARY + vector(math.log(1.5), 0.0, math.log(0.5))
    gaps = vector(1.0, 0.0, -1.0)
    torch.testing.assert_close(autograd(lambda x: signed_loss(x, ORDINARY, gaps), moved), vector(0.0, 0.0, 0.0))
