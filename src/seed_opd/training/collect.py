"""Stage 1, its data: completed episodes of the policy, and a skill about each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path

from seed_opd.hindsight.analyzer import Analyzer
from seed_opd.policy.rollout import Assignment
from seed_opd.training.pairs import SKILLS, TRAJECTORIES
from seed_opd.training.progress import Display
from seed_opd.training.setup import Parts, shuffled_tasks
from seed_opd.trajectory import SkillStatus, Task, Trajectory, read_trajectories, write_jsonl


def collect(parts: Parts, folder: Path) -> list[Trajectory]:
    """Play `stage1.tasks` training tasks `stage1.rollouts` times each, evenly over the categories, and write them down."""
    settings, environment = parts.config.stage1, parts.environment
    tasks = _balanced(shuffled_tasks(parts.config, environment), environment.category, settings.tasks)
    assignments = [
        Assignment(t, f"{parts.config.seed}/collect/{t}/{member}") for t in tasks for member in range(settings.rollouts)
    ]
    display = Display(1)
    with display:
        trajectories = parts.player.play(assignments, settings.temperature, display.episodes(len(assignments)))
    write_jsonl(folder / TRAJECTORIES, trajectories)
    return trajectories


def annotate(analyzer: Analyzer, folder: Path) -> Counter[SkillStatus]:
    """Write a skill about each collected trajectory; returns how many came out with which status."""
    skills = analyzer.analyze(read_trajectories(folder / TRAJECTORIES))
    write_jsonl(folder / SKILLS, skills)
    return Counter(skill.status for skill in skills)


def _balanced(tasks: Sequence[Task], category: Callable[[Task], str], count: int) -> list[Task]:
    """The first `count` tasks, drawn from the categories in turn (reference code: 30 tasks of each of six families)."""
    queues: dict[str, list[Task]] = {}
    for task in tasks:
        queues.setdefault(category(task), []).append(task)
    turns = zip_longest(*queues.values())
    return [task for turn in turns for task in turn if task is not None][:count]
