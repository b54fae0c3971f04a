"""The two scorings: what was sampled, as it was sampled, and once more with a skill in the prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seed_opd.environments.base import Environment
from seed_opd.errors import RunStopped
from seed_opd.methods import Method
from seed_opd.policy.context import Context
from seed_opd.policy.engine import Engine
from seed_opd.policy.samples import Sample
from seed_opd.training.advantages import step_advantages
from seed_opd.trajectory import Skill, Step, Task, Trajectory


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample of a trajectory with its scorings; all tensors (response_tokens,).

    `old` are the sampled log-probs, `skill` those under the skill context (None without a usable skill), `control` those
    under another task's skill, `advantage` one value per token, equal within a step. `eligible` marks the tokens that a
    distillation acts on, where that is not all of them; `floored` turns it off.
    """

    trajectory: int
    sample: Sample
    old: Tensor
    advantage: Tensor
    reference: Tensor | None = None
    skill: Tensor | None = None
    control: Tensor | None = None
    eligible: Tensor | None = None
    floored: bool = False

    @property
    def gap(self) -> Tensor | None:
        """Skill minus ordinary log-prob, in nats."""
        return None if self.skill is None else self.skill - self.old


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
        for sample in context.samples(trajectory, trajectory.prompt_skill)
    ]
    if method.divergence.weight:
        references = engine.logprobs([item.sample for item in scored], reference=True)
        scored = [replace(item, reference=reference) for item, reference in zip(scored, references, strict=True)]
    if not method.has_teacher:
        return scored
    usable = {number: skill for number, skill in enumerate(skills) if skill is not None and skill.usable}
    texts = {number: skill.skill for number, skill in usable.items()}
    in_context = _in_skill_context(engine, context, trajectories, texts, scored)
    scored = [replace(item, skill=values) for item, values in zip(scored, in_context, strict=True)]
    if method.step_skills:
        scored = _with_step_skills(engine, context, trajectories, usable, scored)
    if method.distillation and method.distillation.baseline == "control":
        controls = _in_skill_context(engine, context, trajectories, control_skills(trajectories, texts), scored)
        scored = [replace(item, control=values) for item, values in zip(scored, controls, strict=True)]
    if method.distillation and method.distillation.tokens == "action":
        scored = [replace(item, eligible=_in_action(engine, environment, trajectories, item)) for item in scored]
    if method.distillation and method.distillation.floor:
        telling = telling_tasks(trajectories, scored)
        scored = [replace(item, floored=trajectories[item.trajectory].task not in telling) for item in scored]
    return scored


def telling_tasks(trajectories: Sequence[Trajectory], scored: Sequence[Scored]) -> set[Task]:
    """The tasks in which hindsight tells better from worse: the mean gap where the advantage is positive is the higher one.

    A task without better and worse episodes, or without skills on both sides, cannot show that and is not among them.
    """
    gaps: dict[tuple[Task, bool], list[Tensor]] = {}
    for item in scored:
        if item.skill is not None and item.advantage.any():
            gap = item.skill - (item.old if item.control is None else item.control)
            gaps.setdefault((trajectories[item.trajectory].task, bool(item.advantage[0] > 0)), []).append(gap)
    means = {key: float(torch.cat(parts).mean()) for key, parts in gaps.items()}
    tasks = {task for task, _ in means}
    return {task for task in tasks if means.get((task, True), -math.inf) > means.get((task, False), math.inf)}


def control_skills(trajectories: Sequence[Trajectory], texts: Mapping[int, str]) -> dict[int, str]:
    """For each trajectory with a skill, that of another task which is most like it in length; none without another task."""
    controls = {}
    for number, text in texts.items():
        others = [other for other in texts if trajectories[other].task != trajectories[number].task]
        if others:
            controls[number] = texts[min(others, key=lambda other: (abs(len(texts[other]) - len(text)), other))]
    return controls


def _in_skill_context(
    engine: Engine,
    context: Context,
    trajectories: Sequence[Trajectory],
    texts: Mapping[int, str],
    scored: Sequence[Scored],
) -> list[Tensor | None]:
    """The log-probs of each item's tokens with its trajectory's text in the prompt; None where there is no text."""
    contexts = [sample for number, text in sorted(texts.items()) for sample in context.samples(trajectories[number], text)]
    ordinary = [item for item in scored if item.trajectory in texts]
    for item, sample in zip(ordinary, contexts, strict=True):
        if sample.token_ids == item.sample.token_ids or sample.response_ids != item.sample.response_ids:
            raise RunStopped(
                f"skills: the skill context of trajectory {item.trajectory} equals the ordinary one or has other responses; "
                "check where the environment puts the skill in its prompts"
            )
    values = iter(engine.logprobs(contexts))
    return [next(values) if item.trajectory in texts else None for item in scored]


def _with_step_skills(
    engine: Engine,
    context: Context,
    trajectories: Sequence[Trajectory],
    skills: Mapping[int, Skill],
    scored: Sequence[Scored],
) -> list[Scored]:
    """Replace the episode's skill by a step's own, for the tokens of that step alone."""
    wanted = {
        (number, index): text
        for number, skill in skills.items()
        for index, text in skill.steps
        if index < len(trajectories[number].steps)
    }
    samples = [_one_step(context, trajectories[number], index, text) for (number, index), text in wanted.items()]
    values = dict(zip(wanted, engine.logprobs(samples), strict=True))
    return [replace(item, skill=_routed(item, values)) for item in scored]


def _one_step(context: Context, trajectory: Trajectory, index: int, text: str) -> Sample:
    """The episode up to a step, with the step's skill in its prompt; scored is that step alone."""
    sample = context.samples(replace(trajectory, steps=trajectory.steps[: index + 1]), text)[-1]
    return Sample(sample.token_ids, sample.spans[-1:], sample.steps[-1:])


def _routed(item: Scored, values: Mapping[tuple[int, int], Tensor]) -> Tensor | None:
    if item.skill is None:
        return None
    parts = item.skill.split([end - start for start, end in item.sample.spans])
    return torch.cat(
        [values.get((item.trajectory, step), part) for step, part in zip(item.sample.steps, parts, strict=True)]
    )


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
