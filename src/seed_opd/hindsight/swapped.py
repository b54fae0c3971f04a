"""Wrong skills on purpose: what happens when hindsight errs?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from seed_opd.hindsight.analyzer import Analyzer
from seed_opd.trajectory import Skill, Trajectory

Donor = Literal["other_task", "opposite_outcome"]


@dataclass(frozen=True, slots=True)
class Swapped:
    """An analyzer whose skills are replaced, for a share of the trajectories, by one that was written about another.

    `donor`: a trajectory of another task, or one that ended the other way. Where there is none, the own skill stays.
    """

    inner: Analyzer
    share: float
    donor: Donor
    seed: int

    @property
    def name(self) -> str:
        return self.inner.name

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        skills = self.inner.analyze(trajectories)
        return [self._skill(number, trajectories, skills) for number in range(len(skills))]

    def _skill(self, number: int, trajectories: Sequence[Trajectory], skills: Sequence[Skill]) -> Skill:
        own = trajectories[number]
        rng = random.Random(f"{self.seed}/swap/{own.seed}")
        donors = [
            skill for skill, other in zip(skills, trajectories, strict=True) if skill.usable and self._differs(own, other)
        ]
        return rng.choice(donors) if rng.random() < self.share and donors else skills[number]

    def _differs(self, own: Trajectory, other: Trajectory) -> bool:
        return own.task != other.task if self.donor == "other_task" else own.success != other.success
