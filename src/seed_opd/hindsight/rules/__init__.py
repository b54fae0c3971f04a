"""Skills written by rules: no model, only what an episode's text shows. One module for each environment.

Such a module has two functions: `write`, the skill of an episode, and `named`, by part, the names that a good skill of it
mentions, for the probe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


_GENERAL: dict[str, Callable[[Trajectory], Skill]] = {"alfworld": alfworld.write_general}


class RulesAnalyzer:
    """Writes a skill about each episode from its text; one that it cannot read gets the status "error".

    `general`: one that holds beyond the episode, without names of single things and places.
    """

    name = "rules"

    def __init__(self, general: bool = False) -> None:
        self.general = general

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        return [self._skill(trajectory) for trajectory in trajectories]

    def _skill(self, trajectory: Trajectory) -> Skill:
        try:
            return self._writer(trajectory)(trajectory)
        except UserError as error:
            return Skill("", "", "error", str(error), self.name)

    def _writer(self, trajectory: Trajectory) -> Callable[[Trajectory], Skill]:
        rules = rules_of(trajectory)
        if not self.general:
            return rules.write
        name = trajectory.task.environment
        if name not in _GENERAL:
            raise UserError(f"analyzer.general: rules write such skills for {', '.join(_GENERAL)} alone, not for {name}.")
        return _GENERAL[name]


def rules_of(trajectory: Trajectory) -> Rules:
    """The rules of the environment that an episode was played in; raises UserError where there are none."""
    name = trajectory.task.environment
    if name not in _RULES:
        raise UserError(f"analyzer: there are no rules for the environment {name!r}, only for {', '.join(_RULES)}.")
    return _RULES[name]
