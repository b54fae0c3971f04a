"""The methods, as a table: what each one adds to plain policy optimisation, in a few declarative lines.

A row says which episodes are compared to make an advantage, who writes the text that the teacher reads, and how the gap
between the two scorings becomes a loss. The loop reads the row; it never asks for a method's name.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from seed_opd.errors import UserError
from seed_opd.objectives.aggregate import Normalisation, masked_sum
from seed_opd.objectives.distillation import distillation_loss, gap, sigmoid_gate
from seed_opd.objectives.divergence import k3
from seed_opd.objectives.surrogate import clipped_surrogate
from seed_opd.policy.engine import Loss, Signals


class Part(BaseModel):
    """A part of a row: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Advantage(Part):
    """How good an episode was, compared with the others of its task."""

    unit: Literal["trajectory", "step_sample"] = "trajectory"
    """Statistics over trajectories (paper), or over all their step samples (reference code)."""
    normalise_std: bool = True
    """Divide by the standard deviation (reference code: not on WebShop)."""
    unbiased: bool = False
    """Over trajectories: sample instead of population deviation."""


class Surrogate(Part):
    """The clipped policy-gradient loss."""

    weight: float = Field(default=1.0, ge=0)
    """0 turns the outcome reward off."""
    clip_low: float = Field(default=0.2, gt=0)
    """Lower clip range of the ratio (reference code: 0.2)."""
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip range of the ratio (reference code: 0.2)."""
    dual_clip: float | None = 3.0
    """Bound of the loss at negative advantages (reference code: 3)."""
    normalisation: Normalisation = "tokens"
    """What the sum over tokens is divided by."""


class Divergence(Part):
    """The k3 distance to the policy that the run starts from."""

    weight: float = Field(default=0.01, ge=0)
    """Coefficient (reference code: 0.01)."""
    normalisation: Normalisation = "tokens"
    """What the sum over tokens is divided by."""


class Distillation(Part):
    """SEED's gated self-distillation."""

    weight: float = Field(default=0.01, ge=0)
    """Coefficient lambda (paper: 0.01)."""
    beta: float = Field(default=5.0, ge=0)
    """Steepness of the gate (paper: 5)."""
    tokens: Literal["response", "action"] = "response"
    """All response tokens (reference code) or those of the action alone."""
    normalisation: Normalisation = "active"
    """What the sum over tokens is divided by (reference code: tokens with a usable skill)."""


class Method(Part):
    """One row."""

    name: str
    summary: str
    source: str
    skills: Literal["analyzer"] | None = None
    """Who writes the text that the teacher reads; None means no teacher."""
    advantage: Advantage = Advantage()
    surrogate: Surrogate = Surrogate()
    divergence: Divergence = Divergence()
    distillation: Distillation | None = None

    @model_validator(mode="after")
    def _has_a_teacher(self) -> Method:
        if self.distillation is not None and self.skills is None:
            raise ValueError("a distillation needs skills; add skills: analyzer")
        return self


TABLE: dict[str, Method] = {
    row.name: row
    for row in (
        Method(
            name="grpo",
            summary="Outcome reward alone: each episode against the others of its task.",
            source="paper, section on GRPO; reference code",
        ),
        Method(
            name="seed",
            summary="GRPO, and the policy's own hindsight skill on each episode as a dense signal.",
            source="paper; reference code (lambda 0.01, beta 5, all response tokens)",
            skills="analyzer",
            distillation=Distillation(),
        ),
    )
}


def resolve(name: str, overrides: dict[str, Any] | None = None) -> Method:
    """The row of a method with a recipe's changes; raises UserError for an unknown name, field or value."""
    if name not in TABLE:
        raise UserError(f"method: {name!r} is unknown; choose one of {', '.join(TABLE)}.")
    try:
        return Method.model_validate(_merge(TABLE[name].model_dump(), overrides or {}))
    except ValidationError as error:
        detail = error.errors()[0]
        field = ".".join(["overrides", *map(str, detail["loc"])])
        value = detail["input"] if detail["loc"] else overrides
        message = detail["msg"].removeprefix("Value error, ").lower()
        raise UserError(f"{field}: {value!r} is not valid for {name}: {message}.") from error


def loss_of(method: Method) -> Loss:
    """The method's loss: per component one weighted sum over a flat micro-batch; weights hold the denominators already."""

    def loss(log_probs: Tensor, signals: Signals) -> dict[str, Tensor]:
        parts = {}
        if method.surrogate.weight:
            clip = method.surrogate
            per_token = clipped_surrogate(
                log_probs,
                signals["old"],
                signals["advantage"],
                clip_low=clip.clip_low,
                clip_high=clip.clip_high,
                dual_clip=clip.dual_clip,
            )
            parts["surrogate"] = masked_sum(per_token, signals["surrogate_weight"])
        if method.divergence.weight:
            parts["kl"] = masked_sum(k3(log_probs, signals["reference"]), signals["kl_weight"])
        if method.distillation:
            gate = sigmoid_gate(gap(signals["skill"], log_probs), method.distillation.beta)
            per_token = distillation_loss(log_probs, signals["skill"], gate)
            parts["distillation"] = masked_sum(per_token, signals["distillation_weight"])
        return parts

    return loss


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
