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
from seed_opd.objectives.distillation import distillation_loss, gap, importance_k3_loss, sigmoid_gate, signed_loss
from seed_opd.objectives.divergence import k3
from seed_opd.objectives.surrogate import clipped_away, clipped_surrogate
from seed_opd.policy.engine import Loss, Signals


class Part(BaseModel):
    """A part of a row: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Actor(Part):
    """What the policy is shown beside the ordinary prompt when it plays."""

    train: Literal["library"] | None = None
    """The skill in its prompt while it trains."""
    evaluate: tuple[Literal["ordinary", "library"], ...] = ("ordinary",)
    """How the panels are played; the first one chooses the best checkpoint."""

    @property
    def reads_library(self) -> bool:
        return "library" in (self.train, *self.evaluate)


class StepCredit(Part):
    """An advantage of single steps: those taken after the same observation in the same task are compared (GiGPO)."""

    weight: float = Field(default=1.0, gt=0)
    """Added to the episode's advantage (published: 1)."""
    discount: float = Field(default=0.95, gt=0, le=1)
    """Of later rewards in a step's return (published: 0.95)."""


class Advantage(Part):
    """How good an episode was, compared with the others of its task."""

    unit: Literal["trajectory", "step_sample"] = "trajectory"
    """Statistics over trajectories (paper), or over all their step samples (reference code)."""
    normalise_std: bool = True
    """Divide by the standard deviation (reference code: not on WebShop)."""
    unbiased: bool = False
    """Over trajectories: sample instead of population deviation."""
    steps: StepCredit | None = None
    """What is added for each step."""


class Shaping(Part):
    """The gap as a part of the advantage."""

    form: Literal["added", "modulated"] = "added"
    """`added`: A + weight * gap (OPID). `modulated`: A times a clipped factor, by as much as the weight says (RLSD)."""
    weight: float = Field(default=0.001, ge=0)
    """Weight of the gap (OPID: 0.001), or strength of the modulation (RLSD: 0.5)."""
    clip: float = Field(default=0.2, gt=0)
    """`modulated`: how far the factor may be from 1."""
    decay_updates: int | None = Field(default=None, ge=1)
    """The weight falls linearly to 0 within so many updates (RLSD: 50 to 100); constant by default."""


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
    """Self-distillation from the skill context, as a loss beside the others."""

    weight: float = Field(default=0.01, ge=0)
    """Coefficient lambda (paper: 0.01)."""
    form: Literal["gated", "importance_k3", "signed"] = "gated"
    """`gated`: SEED's and SDAR's. `importance_k3`: Skill-SD's. `signed`: ours, down as well as up."""
    beta: float = Field(default=5.0, ge=0)
    """Steepness of the gate (paper: 5); 0 is a uniform gate of one half."""
    tokens: Literal["response", "action"] = "response"
    """All response tokens (reference code) or those of the action alone."""
    normalisation: Normalisation = "active"
    """What the sum over tokens is divided by (reference code: tokens with a usable skill)."""
    baseline: Literal["ordinary", "control"] = "ordinary"
    """What the gap is measured from: the ordinary context (paper), or one with another task's skill (ours)."""
    floor: bool = False
    """Only for groups in which the gap of the better trajectories is above that of the worse (ours)."""


Writer = Literal["analyzer", "frozen", "external", "library"]


class Method(Part):
    """One row."""

    name: str
    summary: str
    source: str
    trained: bool = True
    """False: the policy is evaluated as it is."""
    start: Literal["stage1", "base"] = "stage1"
    """Which policy it begins with: the one that stage 1 taught to analyse, or the one before."""
    actor: Actor = Actor()
    skills: Writer | None = None
    """Who writes what the teacher reads: the run's analyzer, the policy as it began, stage 1's analyzer, the library."""
    step_skills: bool = False
    """Steps that have a skill of their own are scored with it instead of the episode's (OPID's critical-first routing)."""
    advantage: Advantage = Advantage()
    shaping: Shaping | None = None
    surrogate: Surrogate = Surrogate()
    divergence: Divergence = Divergence()
    distillation: Distillation | None = None

    @property
    def has_teacher(self) -> bool:
        """Whether sampled tokens are scored in a skill context."""
        return self.distillation is not None or self.shaping is not None

    @model_validator(mode="after")
    def _has_text_for_its_teacher(self) -> Method:
        if self.has_teacher and self.skills is None:
            raise ValueError("a teacher needs skills; say who writes them, for example skills: analyzer")
        return self


_STATIC = "; its code base reads a static library"

TABLE: dict[str, Method] = {
    row.name: row
    for row in (
        Method(
            name="vanilla",
            summary="No training: the policy as stage 1 leaves it.",
            source="paper, Vanilla (there: the base policy; start: base)",
            trained=False,
        ),
        Method(
            name="skill_prompt",
            summary="No training: the library's skills in the prompt.",
            source="paper, Skill-Prompt",
            trained=False,
            actor=Actor(evaluate=("library",)),
        ),
        Method(
            name="grpo",
            summary="Outcome reward alone: each episode against the others of its task.",
            source="paper, section on GRPO; reference code",
        ),
        Method(
            name="skill_grpo",
            summary="GRPO with the library's skills in the prompt; evaluated without and with them.",
            source="paper, Skill-GRPO",
            actor=Actor(train="library", evaluate=("ordinary", "library")),
        ),
        Method(
            name="gigpo",
            summary="GRPO, and each step against others that saw the same observation.",
            source="GiGPO as in the reference code (step weight 1, discount 0.95)",
            advantage=Advantage(steps=StepCredit()),
        ),
        Method(
            name="opsd",
            summary="Self-distillation from the library alone, without the outcome reward.",
            source="SDAR's code base (0.01, beta 5, no policy gradient)",
            skills="library",
            surrogate=Surrogate(weight=0),
            distillation=Distillation(),
        ),
        Method(
            name="grpo_opsd",
            summary="GRPO, and self-distillation from the library with the same weight on every token.",
            source="SDAR's code base (0.01, beta 0: a gate of one half)",
            skills="library",
            distillation=Distillation(beta=0),
        ),
        Method(
            name="skill_sd",
            summary="GRPO, and an importance-weighted distance to the skill context.",
            source="arXiv 2604.10674 (0.001; skills from own episodes there)" + _STATIC,
            skills="library",
            distillation=Distillation(weight=0.001, form="importance_k3"),
        ),
        Method(
            name="rlsd",
            summary="GRPO whose advantage the gap makes up to a tenth larger or smaller, fading out.",
            source="arXiv 2604.03128 (0.5, clip 0.2, to 0 in 50 to 100 updates: 100 here)" + _STATIC,
            skills="library",
            shaping=Shaping(form="modulated", weight=0.5, decay_updates=100),
        ),
        Method(
            name="sdar",
            summary="GRPO, and gated self-distillation from the library.",
            source="arXiv 2605.15155 (0.01, beta 5)",
            skills="library",
            distillation=Distillation(),
        ),
        Method(
            name="opid",
            summary="GRPO, and the gap added to the advantage; skills of single steps come before the episode's.",
            source="arXiv 2606.26790; its reference code (0.001 for both, external analyzer, advantage over step samples)",
            skills="external",
            step_skills=True,
            shaping=Shaping(),
        ),
        Method(
            name="seed",
            summary="GRPO, and the policy's own hindsight skill on each episode as a dense signal.",
            source="paper; reference code (lambda 0.01, beta 5, all response tokens)",
            skills="analyzer",
            distillation=Distillation(),
        ),
        Method(
            name="seed_without_sft",
            summary="SEED from the base policy, which nobody taught to analyse.",
            source="paper, ablation w/o SFT",
            start="base",
            skills="analyzer",
            distillation=Distillation(),
        ),
        Method(
            name="seed_frozen",
            summary="SEED whose analyzer stays the policy that the run starts from.",
            source="paper, ablation w/o self-evolving OPD",
            skills="frozen",
            distillation=Distillation(),
        ),
        Method(
            name="seed_library",
            summary="SEED whose teacher reads the library: SDAR's loss.",
            source="paper, ablation w/o on-policy skill (its row equals SDAR's)",
            skills="library",
            distillation=Distillation(),
        ),
        Method(
            name="seed_tokens",
            summary="SEED whose strength does not grow when fewer skills are usable.",
            source="ours",
            skills="analyzer",
            distillation=Distillation(normalisation="tokens"),
        ),
        Method(
            name="seed_signed",
            summary="SEED that also lowers what the skill speaks against, bounded and clipped.",
            source="ours",
            skills="analyzer",
            distillation=Distillation(form="signed", normalisation="tokens"),
        ),
        Method(
            name="seed_control",
            summary="Signed SEED whose gap is measured from another task's skill: the mere presence of text counts nothing.",
            source="ours",
            skills="analyzer",
            distillation=Distillation(form="signed", normalisation="tokens", baseline="control"),
        ),
        Method(
            name="seed_floor",
            summary="Signed SEED, only where the gap tells better from worse episodes; plain GRPO elsewhere.",
            source="ours",
            skills="analyzer",
            distillation=Distillation(form="signed", normalisation="tokens", floor=True),
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
            clips = method.surrogate.model_dump(include={"clip_low", "clip_high", "dual_clip"})
            policies = log_probs, signals["old"], signals["advantage"]
            weights = signals["surrogate_weight"]
            parts["surrogate"] = masked_sum(clipped_surrogate(*policies, **clips), weights)
            parts["clip_share"] = masked_sum(clipped_away(*policies, **clips).float(), weights) / method.surrogate.weight
        if method.divergence.weight:
            parts["kl"] = masked_sum(k3(log_probs, signals["reference"]), signals["kl_weight"])
        if method.distillation:
            per_token = _DISTILLATIONS[method.distillation.form](log_probs, signals, method.distillation)
            parts["distillation"] = masked_sum(per_token, signals["distillation_weight"])
        return parts

    return loss


def _gated(log_probs: Tensor, signals: Signals, row: Distillation) -> Tensor:
    baseline = signals["control"] if row.baseline == "control" else log_probs
    gate = sigmoid_gate(gap(signals["skill"], baseline), row.beta)
    return distillation_loss(log_probs, signals["skill"], gate)


def _importance_k3(log_probs: Tensor, signals: Signals, row: Distillation) -> Tensor:
    return importance_k3_loss(log_probs, signals["skill"], signals["old"])


def _signed(log_probs: Tensor, signals: Signals, row: Distillation) -> Tensor:
    baseline = signals["control" if row.baseline == "control" else "old"]
    return signed_loss(log_probs, signals["old"], gap(signals["skill"], baseline), row.beta)


_DISTILLATIONS = {"gated": _gated, "importance_k3": _importance_k3, "signed": _signed}


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
