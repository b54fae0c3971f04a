"""How the gradient of a loss reaches a Tinker server, and how that is found out.

The protocol's custom loss is made of two calls: the server scores, the loss is differentiated here at the log-probs, and the
server goes backward through `cross_entropy` with the negative gradient as weights. That is right on a server that sums
weights times log-probs. SkyRL 0.4's JAX back-end does not: it divides each sequence by the sum of its weights (by 1e-9 where
that sum is negative) and the total by the number of sequences. There the same gradient is sent as the advantages of
`importance_sampling`, at a ratio of 1, multiplied by what the server will divide by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from seed_opd.errors import RunStopped
from seed_opd.policy.samples import Sample
from seed_opd.policy.tinker_service import TinkerService, checked_log_probs, grad_norm, targets_of

Total = Callable[[Sequence[Tensor]], Tensor]
"""From the live log-probs of all targets, one (tokens - 1,) tensor per sample, to one scalar."""


class Gradients(Protocol):
    """Accumulates gradients on the server between two optimizer steps."""

    name: str
    clips: bool
    """False where the server is known not to clip the gradient, though it is asked to."""

    def add(self, client: Any, samples: Sequence[Sample], total: Total) -> None:
        """Add the gradient of a loss over samples."""

    def flush(self, client: Any) -> None:
        """Send what was kept back; the optimizer step follows."""


class SummedGradients:
    """For servers that sum, as the protocol's documentation says: the SDK's custom loss."""

    name, clips = "sum", True

    def __init__(self, service: TinkerService) -> None:
        self._service = service

    def add(self, client: Any, samples: Sequence[Sample], total: Total) -> None:
        def loss(data: Sequence[Any], log_probs: Sequence[Tensor]) -> tuple[Tensor, dict[str, float]]:
            checked = [checked_log_probs(value, sample) for value, sample in zip(log_probs, samples, strict=True)]
            return total(checked), {}

        data = [self._service.datum(sample) for sample in samples]
        self._service.ask("a gradient", lambda: client.forward_backward_custom(data, loss))

    def flush(self, client: Any) -> None:
        pass


@dataclass(slots=True)
class AveragedGradients:
    """For SkyRL's JAX back-end: gradients wait for the optimizer step, when it is known by what the server divides."""

    service: TinkerService
    name: str = "average"
    clips: bool = False
    _kept: list[tuple[Sample, Tensor, Tensor]] = field(default_factory=list)
    """Samples with their log-probs and gradients, both (tokens - 1,)."""

    def add(self, client: Any, samples: Sequence[Sample], total: Total) -> None:
        log_probs = [value.requires_grad_() for value in self.service.forward("log-probs", client, samples)]
        gradients = torch.autograd.grad(total(log_probs), log_probs)
        for sample, value, gradient in zip(samples, log_probs, gradients, strict=True):
            if sample.response_tokens:
                self._kept.append((sample, value.detach(), gradient))

    def flush(self, client: Any) -> None:
        data = [self._datum(*kept, sequences=len(self._kept)) for kept in self._kept]
        self._kept.clear()
        if data:
            self.service.ask("a gradient", lambda: client.forward_backward(data, "importance_sampling"))

    def _datum(self, sample: Sample, log_probs: Tensor, gradient: Tensor, *, sequences: int) -> Any:
        mask = torch.zeros_like(gradient)
        mask[targets_of(sample)] = 1.0
        advantages = -gradient * sample.response_tokens * sequences
        return self.service.datum(sample, weights=mask, logprobs=log_probs, advantages=advantages)


def find_out(service: TinkerService, client: Any) -> Gradients:
    """Measure with two tiny batches how a server scales gradients; `client` is one whose weights are never used to train.

    Weights 1 and 2 must give gradient norms of ratio 2 where the server sums, 1 where it averages; the learning rate is 0. A
    server that reports no gradient norm is taken to sum. Raises RunStopped for anything else.
    """
    norms = [_norm(service, client, weights) for weights in ([1.0], [2.0], [1.0, 1.0])]
    one, doubled, twice = norms
    if one is None or doubled is None or twice is None:
        return SummedGradients(service)
    ratios = (doubled / one, twice / one) if one > 0 else (0.0, 0.0)
    if _close(ratios, 2.0):
        return SummedGradients(service)
    if _close(ratios, 1.0):
        return AveragedGradients(service)
    raise RunStopped(
        f"the Tinker server scales gradients in a way that is not known here: weights twice as large give {ratios[0]:.3f} "
        f"times the norm, twice as many sequences {ratios[1]:.3f} times; use another server or version."
    )


PROBE = Sample(token_ids=tuple(range(1, 9)), spans=((1, 8),))
"""Any tokens will do: only ratios of gradients are looked at."""


def _norm(service: TinkerService, client: Any, weights: Sequence[float]) -> float | None:
    """The gradient norm after one sequence per weight, all its tokens weighted so."""
    data = [service.datum(PROBE, weights=torch.full((len(PROBE.token_ids) - 1,), weight)) for weight in weights]
    service.ask("a gradient", lambda: client.forward_backward(data, "cross_entropy"))
    return grad_norm(service.ask("a step", lambda: client.optim_step(service.sdk.types.AdamParams(learning_rate=0.0))))


def _close(ratios: Sequence[float], expected: float) -> bool:
    return all(abs(ratio - expected) < 0.05 * expected for ratio in ratios)
