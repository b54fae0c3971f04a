"""From the returns of trajectories to an advantage for each of their steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seed_opd.methods import Advantage, StepCredit
from seed_opd.objectives.advantages import discounted_returns, group_relative, step_sample_relative
from seed_opd.trajectory import Step, Trajectory


def step_advantages(trajectories: Sequence[Trajectory], row: Advantage) -> list[list[float]]:
    """The advantage of every step of every trajectory; with unit "trajectory", one value for all steps of an episode."""
    values = _of_episodes(trajectories, row)  # (steps,)
    if row.steps is not None:
        values = values + row.steps.weight * _of_steps(trajectories, row.steps, row.normalise_std)
    return [part.tolist() for part in values.split([len(t.steps) for t in trajectories])]


def _of_episodes(trajectories: Sequence[Trajectory], row: Advantage) -> Tensor:
    """How each episode compares with the others of its task, for each of its steps, (steps,)."""
    tasks = {task: number for number, task in enumerate(dict.fromkeys(t.task for t in trajectories))}
    groups = torch.tensor([tasks[t.task] for t in trajectories])  # (trajectories,)
    lengths = torch.tensor([len(t.steps) for t in trajectories])  # (trajectories,)
    if row.unit == "trajectory":
        returns = torch.tensor([t.reward - t.penalty for t in trajectories], dtype=torch.float64)
        values = group_relative(returns, groups, normalise_std=row.normalise_std, unbiased=row.unbiased)
        return values.repeat_interleave(lengths)
    returns = torch.tensor([t.reward for t in trajectories], dtype=torch.float64)
    penalties = torch.tensor([_step_penalty(t, step) for t in trajectories for step in t.steps], dtype=torch.float64)
    return step_sample_relative(returns, groups, lengths, penalties, normalise_std=row.normalise_std)


def _of_steps(trajectories: Sequence[Trajectory], row: StepCredit, normalise_std: bool) -> Tensor:
    """How the return from each step on compares with steps of the same task that saw the same observation, (steps,)."""
    seen = [(t.task, step.observation) for t in trajectories for step in t.steps]
    places = {state: number for number, state in enumerate(dict.fromkeys(seen))}
    groups = torch.tensor([places[state] for state in seen])  # (steps,)
    rewards = torch.tensor([s.reward - _step_penalty(t, s) for t in trajectories for s in t.steps], dtype=torch.float64)
    returns = discounted_returns(rewards, torch.tensor([len(t.steps) for t in trajectories]), row.discount)
    return group_relative(returns, groups, normalise_std=normalise_std)


def _step_penalty(trajectory: Trajectory, step: Step) -> float:
    invalid = sum(not other.valid for other in trajectory.steps)
    return 0.0 if step.valid else trajectory.penalty / invalid
