"""Gradients by finite differences, to hold the analytic ones against."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def autograd(loss: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    point = point.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(point).sum(), point)
    return gradient


def central(loss: Callable[[Tensor], Tensor], point: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences of loss(point).sum(), one coordinate after the other."""
    gradient = torch.zeros_like(point)
    for index in range(point.numel()):
        shift = torch.zeros_like(point)
        shift.view(-1)[index] = step
        difference = loss(point + shift).sum() - loss(point - shift).sum()
        gradient.view(-1)[index] = difference / (2 * step)
    return gradient
