"""What stage 1 trains on: the analyzer's prompt about a finished episode, and the analysis as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_opd.errors import UserError
from seed_opd.hindsight.schema import render
from seed_opd.hindsight.views import View
from seed_opd.policy.context import ChatTemplate
from seed_opd.policy.samples import Sample
from seed_opd.trajectory import Skill, Trajectory, read_skills, read_trajectories

TRAJECTORIES = "trajectories.jsonl"
SKILLS = "skills.jsonl"


@dataclass(frozen=True, slots=True)
class Annotated:
    """A finished episode and the skill that was written about it."""

    trajectory: Trajectory
    skill: Skill


def read_annotated(folder: Path) -> list[Annotated]:
    """The episodes of a stage-1 folder whose skill is usable; raises UserError where files are missing or do not match."""
    for name, verb in ((TRAJECTORIES, "collect"), (SKILLS, "annotate")):
        if not (folder / name).exists():
            raise UserError(f"stage1: {str(folder / name)!r} is missing; run `seed-opd {verb}` first.")
    trajectories, skills = read_trajectories(folder / TRAJECTORIES), read_skills(folder / SKILLS)
    if len(trajectories) != len(skills):
        raise UserError(
            f"stage1: {str(folder)!r} has {len(trajectories)} trajectories and {len(skills)} skills; annotate it again."
        )
    return [Annotated(t, skill) for t, skill in zip(trajectories, skills, strict=True) if skill.usable]


def split_by_task(rows: Sequence[Annotated], validation: float) -> tuple[list[Annotated], list[Annotated]]:
    """Training and validation rows; all episodes of a task are on one side. The last tasks are held out."""
    tasks = list(dict.fromkeys(row.trajectory.task for row in rows))
    held_out = set(tasks[len(tasks) - round(validation * len(tasks)) :])
    return [r for r in rows if r.trajectory.task not in held_out], [r for r in rows if r.trajectory.task in held_out]


def pair_sample(template: ChatTemplate, view: View, row: Annotated) -> Sample:
    """One pair as a token sequence: the analyzer's prompt, then the JSON and the end token, which are trained."""
    prompt = view.prompt(row.trajectory).ids
    target = [*template.tokenizer.encode(render(row.skill), add_special_tokens=False), template.end_id]
    return Sample((*prompt, *target), ((len(prompt), len(prompt) + len(target)),))
