"""Skills written by rules: no model, only what an episode's text shows. One module for each environment.

Such a module has two functions: `write`, the skill of an episode, and `named`, by part, the names that a good skill of it
mentions, for the probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from seed_opd.errors import UserError
from seed_opd.hindsight.rules import alfworld, ezpoints, search, sokoban, webshop
from seed_opd.trajectory import Skill, Trajectory


class Rules(Protocol):
    """What rules know about the episodes of one environment; both raise UserError for one that they cannot read."""

    def write(self, trajectory: Trajectory, /) -> Skill: ...

    def named(self, trajectory: Trajectory, /) -> Mapping[str, Sequence[str]]: ...


_RULES: dict[str, Rules] = {
    "alfworld": alfworld,
    "webshop": webshop,
    "search": search,
    "sokoban": sokoban,
    "ezpoints": ezpoints,
}


class RulesAnalyzer:
    """Writes a skill about each episode from its text; one that it cannot read gets the status "error"."""

    name = "rules"

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        return [self._skill(trajectory) for trajectory in trajectories]

    def _skill(self, trajectory: Trajectory) -> Skill:
        try:
            return rules_of(trajectory).write(trajectory)
        except UserError as error:
            return Skill("", "", "error", str(error), self.name)


def rules_of(trajectory: Trajectory) -> Rules:
    """The rules of the environment that an episode was played in; raises UserError where there are none."""
    name = trajectory.task.environment
    if name not in _RULES:
        raise UserError(f"analyzer: there are no rules for the environment {name!r}, only for {', '.join(_RULES)}.")
    return _RULES[name]
