"""The static skill library: what an environment's tasks have in common, written down once (for the methods that read one).

One YAML file per environment: `general`, sentences for every task, and `families`, sentences for each category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import yaml

from seed_opd.errors import UserError
from seed_opd.trajectory import Skill, Trajectory


@dataclass(frozen=True, slots=True)
class Library:
    """Skills by category; as an analyzer it gives each trajectory those of its category, whatever happened in it."""

    general: Sequence[str]
    families: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        return "library"

    @classmethod
    def of(cls, environment: str) -> Library:
        """The packaged library of an environment; raises UserError when there is none."""
        file = resources.files("seed_opd") / "hindsight" / "libraries" / f"{environment}.yaml"
        if not file.is_file():
            raise UserError(
                f"method: there is no skill library for the environment {environment!r}; choose a method that writes its "
                "own skills, or write one."
            )
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        return cls(tuple(data["general"]), {name: tuple(lines) for name, lines in data["families"].items()})

    def skill(self, category: str) -> str:
        """The text for a task of this category; raises UserError for a category that it does not know."""
        if category not in self.families:
            raise UserError(
                f"library: it has nothing for {category!r}, only for {', '.join(self.families)}; add it to the library."
            )
        return " ".join([*self.general, *self.families[category]])

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        return [Skill("", self.skill(trajectory.category), analyzer=self.name) for trajectory in trajectories]
