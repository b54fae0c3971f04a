"""The analyzer protocol: finished trajectories in, one skill for each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seed_opd.processes import from_main, spread
from seed_opd.trajectory import Skill, Trajectory


class Analyzer(Protocol):
    """Whatever writes skills. The order is kept, and each trajectory gets a skill: one that failed says so by its status."""

    @property
    def name(self) -> str: ...

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]: ...


@dataclass(frozen=True, slots=True)
class Shared:
    """An analyzer that every process of a run holds: each asks its own about a part of the trajectories."""

    inner: Analyzer

    @property
    def name(self) -> str:
        return self.inner.name

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        return spread(self.inner.analyze, trajectories)


@dataclass(frozen=True, slots=True)
class AskedOnce:
    """An analyzer outside the run: the main process asks it, and the others hear what it said."""

    inner: Analyzer

    @property
    def name(self) -> str:
        return self.inner.name

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        return from_main(lambda: self.inner.analyze(trajectories))
