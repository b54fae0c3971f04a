"""The analyzer protocol: finished trajectories in, one skill for each out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seed_opd.trajectory import Skill, Trajectory


class Analyzer(Protocol):
    """Whatever writes skills. The order is kept, and each trajectory gets a skill: one that failed says so by its status."""

    name: str

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]: ...
