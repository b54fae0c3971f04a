"""From trajectories and their skills to what the loss reads: two scorings, advantages and weights per response token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seed_opd.environments.base import Environment
from seed_opd.errors import RunStopped
from seed_opd.methods import Advantage, Method
from seed_opd.objectives.advantages import group_relative, step_sample_relative
from seed_opd.objectives.aggregate import Normalisation, denominator, token_weights
from seed_opd.policy.context import Context
from seed_opd.policy.engine import Engine, Signals
from seed_opd.policy.samples import Sample
from seed_opd.trajectory import Skill, Step, Trajectory


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample of a trajectory with its scorings; all tensors (response_tokens,).

    `old` are the sampled log-probs, `skill` those under the skill context (None without a usable skill), `advantage` one
    value per token, equal within a step.
    """

    trajectory: int
    sample: Sample
    old: Tensor
    advantage: Tensor
    reference: Tensor | None = None
    skill: Tensor | None = None
    eligible: Tensor | None = None

    @property
    def gap(self) -> Tensor | None:
        """Skill minus ordinary log-prob, in nats."""
        return None if self.skill is None else self.skill - self.old


def step_advantages(trajectories: Sequence[Trajectory], row: Advantage) -> list[list[float]]:
    """The advantage of every step of every trajectory; with unit "trajectory", one value for all steps of an episode."""
    tasks = {task: number for number, task in enumerate(dict.fromkeys(t.task for t in trajectories))}
    groups = torch.tensor([tasks[t.task] for t in trajectories])  # (trajectories,)
    lengths = [len(t.steps) for t in trajectories]
    if row.unit == "trajectory":
        returns = torch.tensor([t.reward - t.penalty for t in trajectories], dtype=torch.float64)
        values = group_relative(returns, groups, normalise_std=row.normalise_std, unbiased=row.unbiased)
        return [[value] * length for value, length in zip(values.tolist(), lengths, strict=True)]
    returns = torch.tensor([t.reward for t in trajectories], dtype=torch.float64)
    penalties = torch.tensor([_step_penalty(t, step) for t in trajectories for step in t.steps], dtype=torch.float64)
    values = step_sample_relative(returns, groups, torch.tensor(lengths), penalties, normalise_std=row.normalise_std)
    return [part.tolist() for part in values.split(lengths)]


def score(
    engine: Engine,
    context: Context,
    environment: Environment,
    method: Method,
    trajectories: Sequence[Trajectory],
    skills: Sequence[Skill | None],
) -> list[Scored]:
    """Score what was sampled: under the ordinary context as sampled, under the reference, and with the skill in the prompt.

    Raises RunStopped when a skill context equals the ordinary one or holds other responses, which would silently train
    on nothing.
    """
    advantages = step_advantages(trajectories, method.advantage)
    scored = [
        Scored(number, sample, _per_step(trajectory, sample), _spread(sample, advantages[number]))
        for number, trajectory in enumerate(trajectories)
        for sample in context.samples(trajectory)
    ]
    if method.divergence.weight:
        references = engine.logprobs([item.sample for item in scored], reference=True)
        scored = [replace(item, reference=reference) for item, reference in zip(scored, references, strict=True)]
    if method.distillation:
        scored = _with_skills(engine, context, trajectories, skills, scored)
        if method.distillation.tokens == "action":
            scored = [replace(item, eligible=_in_action(engine, environment, trajectories, item)) for item in scored]
    return scored


def signals_of(method: Method, batch: Sequence[Scored]) -> list[Signals]:
    """What the loss reads, for the samples of one optimizer step; the weights hold each component's denominator."""
    weights = _weights(
        batch, [torch.ones(len(item.old), dtype=torch.bool) for item in batch], method.surrogate.normalisation
    )
    signals = [
        {"old": item.old, "advantage": item.advantage, "surrogate_weight": method.surrogate.weight * weight}
        for item, weight in zip(batch, weights, strict=True)
    ]
    if method.divergence.weight:
        everywhere = [torch.ones(len(item.old), dtype=torch.bool) for item in batch]
        for signal, item, weight in zip(
            signals, batch, _weights(batch, everywhere, method.divergence.normalisation), strict=True
        ):
            assert item.reference is not None
            signal |= {"reference": item.reference, "kl_weight": method.divergence.weight * weight}
    if method.distillation:
        active = [_active(item) for item in batch]
        for signal, item, weight in zip(
            signals, batch, _weights(batch, active, method.distillation.normalisation), strict=True
        ):
            skill = item.old if item.skill is None else item.skill
            signal |= {"skill": skill, "distillation_weight": method.distillation.weight * weight}
    return list(signals)


def _weights(batch: Sequence[Scored], active: Sequence[Tensor], normalisation: Normalisation) -> list[Tensor]:
    flat = torch.cat(list(active))  # (tokens,)
    owners = torch.cat([torch.full((len(item.old),), item.trajectory) for item in batch])  # (tokens,)
    weights = token_weights(flat, owners, normalisation) / denominator(flat, owners, normalisation)
    return list(weights.split([len(item.old) for item in batch]))


def _active(item: Scored) -> Tensor:
    if item.skill is None:
        return torch.zeros(len(item.old), dtype=torch.bool)
    return torch.ones(len(item.old), dtype=torch.bool) if item.eligible is None else item.eligible


def _with_skills(
    engine: Engine,
    context: Context,
    trajectories: Sequence[Trajectory],
    skills: Sequence[Skill | None],
    scored: Sequence[Scored],
) -> list[Scored]:
    usable = {number: skill.skill for number, skill in enumerate(skills) if skill is not None and skill.usable}
    contexts = [sample for number, text in usable.items() for sample in context.samples(trajectories[number], text)]
    ordinary = [item for item in scored if item.trajectory in usable]
    for item, sample in zip(ordinary, contexts, strict=True):
        if sample.token_ids == item.sample.token_ids or sample.response_ids != item.sample.response_ids:
            raise RunStopped(
                f"skills: the skill context of trajectory {item.trajectory} equals the ordinary one or has other responses; "
                "check where the environment puts the skill in its prompts"
            )
    scores = iter(engine.logprobs(contexts))
    return [replace(item, skill=next(scores)) if item.trajectory in usable else item for item in scored]


def _in_action(engine: Engine, environment: Environment, trajectories: Sequence[Trajectory], item: Scored) -> Tensor:
    """Which response tokens belong to the action, (response_tokens,) bool."""
    steps = [trajectories[item.trajectory].steps[index] for index in item.sample.steps]
    return torch.tensor(
        [inside for step in steps for inside in _step_in_action(engine, environment, step)], dtype=torch.bool
    )


def _step_in_action(engine: Engine, environment: Environment, step: Step) -> list[bool]:
    start, end = environment.action_span(step.response)
    ends = [
        len(engine.tokenizer.decode(list(step.response_ids[: count + 1]), skip_special_tokens=True))
        for count in range(len(step.response_ids))
    ]
    return [begin < end and finish > start for begin, finish in zip([0, *ends[:-1]], ends, strict=True)]


def _per_step(trajectory: Trajectory, sample: Sample) -> Tensor:
    return torch.tensor([value for index in sample.steps for value in trajectory.steps[index].log_probs])


def _spread(sample: Sample, advantages: Sequence[float]) -> Tensor:
    values = [[advantages[index]] * (end - start) for index, (start, end) in zip(sample.steps, sample.spans, strict=True)]
    return torch.tensor([value for part in values for value in part], dtype=torch.float32)


def _step_penalty(trajectory: Trajectory, step: Step) -> float:
    invalid = sum(not other.valid for other in trajectory.steps)
    return 0.0 if step.valid else trajectory.penalty / invalid
