"""Fixed evaluation panels: every task of a split once, each with its own pinned seed, no skill in the prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from seed_opd.environments.base import Environment
from seed_opd.evaluation.statistics import Count, macro, micro
from seed_opd.policy.rollout import Assignment, Player
from seed_opd.trajectory import Task, Trajectory

PANEL_SEED = "panel"
"""Evaluation draws the same random numbers in every run, whatever the run's seed: panels are paired between runs."""


def panel_tasks(environment: Environment, split: str, limit: int | None) -> list[Task]:
    """The tasks of a panel: all of a split, or `limit` of them spread evenly over it."""
    tasks = list(environment.tasks(split))
    if limit is None or limit >= len(tasks):
        return tasks
    return [tasks[index * len(tasks) // limit] for index in range(limit)]


def play_panel(
    player: Player,
    tasks: Sequence[Task],
    temperature: float,
    progress: Callable[[int], None] = lambda _: None,
    skills: Sequence[str | None] | None = None,
) -> list[Trajectory]:
    """Play every task once, with a skill in its prompt where one is given."""
    skills = skills or [None] * len(tasks)
    assignments = [Assignment(task, f"{PANEL_SEED}/{task}", skill) for task, skill in zip(tasks, skills, strict=True)]
    return player.play(assignments, temperature, progress)


def counts(trajectories: Sequence[Trajectory], categories: Sequence[str]) -> dict[str, Count]:
    """Successes and episodes by category, in the environment's order."""
    episodes = Counter(t.category for t in trajectories)
    successes = Counter(t.category for t in trajectories if t.success)
    return {category: Count(successes[category], episodes[category]) for category in categories if episodes[category]}


def summary(trajectories: Sequence[Trajectory], categories: Sequence[str]) -> dict[str, Any]:
    """Macro and micro success with 95% intervals, and the counts behind them, as one row of the metrics stream."""
    table = counts(trajectories, categories)
    by_category, overall = macro(table), micro(table)
    steps = sum(len(t.steps) for t in trajectories)
    return {
        "macro": by_category.value,
        "macro_low": by_category.low,
        "macro_high": by_category.high,
        "micro": overall.value,
        "micro_low": overall.low,
        "micro_high": overall.high,
        "episodes": len(trajectories),
        "mean_steps": steps / len(trajectories),
        "mean_score": sum(t.score for t in trajectories) / len(trajectories),
        "invalid_share": sum(not step.valid for t in trajectories for step in t.steps) / steps,
        "categories": {name: {"successes": c.successes, "episodes": c.episodes} for name, c in table.items()},
    }
