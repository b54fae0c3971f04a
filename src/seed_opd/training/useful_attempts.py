"""Stage 1 without an external analyzer: the policy's own attempts at a skill, kept where playing again with one helps.

The policy samples a few analyses of each finished episode under the schema, and plays the episode's task again with each
of them in its prompt. The best one counts if it wins more often than the episodes of that task did without.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from seed_opd.hindsight.analyzer import Analyzer
from seed_opd.policy.rollout import Assignment, Player
from seed_opd.training.progress import Display
from seed_opd.trajectory import Skill, Task, Trajectory


@dataclass(frozen=True, slots=True)
class UsefulAttempts:
    """Keeps of each episode's attempts the one that helps most; an episode without such gets a skill of status "useless".

    `attempts` are analyzers that differ in their seed alone, `replays` the episodes that are played with each attempt.
    """

    attempts: Sequence[Analyzer]
    player: Player
    replays: int
    temperature: float
    name = "policy"

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        written = list(zip(*(attempt.analyze(trajectories) for attempt in self.attempts), strict=True))
        with_skill = self._success(trajectories, written)
        without = _success_by_task(trajectories)
        return [
            self._chosen(skills, rates, without[trajectory.task])
            for trajectory, skills, rates in zip(trajectories, written, with_skill, strict=True)
        ]

    def _success(self, trajectories: Sequence[Trajectory], written: Sequence[Sequence[Skill]]) -> list[list[float]]:
        """Success of the task with each attempt in the prompt, by episode and attempt; -1 for an attempt not usable."""
        usable = [(row, column) for row, skills in enumerate(written) for column, one in enumerate(skills) if one.usable]
        assignments = [
            Assignment(trajectories[row].task, f"{trajectories[row].seed}/{column}/{number}", written[row][column].skill)
            for row, column in usable
            for number in range(self.replays)
        ]
        display = Display(1)
        with display:
            played = self.player.play(assignments, self.temperature, display.episodes(len(assignments)))
        rates = [[-1.0] * len(skills) for skills in written]
        for place, (row, column) in enumerate(usable):
            episodes = played[place * self.replays : (place + 1) * self.replays]
            rates[row][column] = sum(one.success for one in episodes) / self.replays
        return rates

    def _chosen(self, skills: Sequence[Skill], rates: Sequence[float], without: float) -> Skill:
        best = max(range(len(skills)), key=lambda column: rates[column])
        if rates[best] < 0 or rates[best] > without:
            return skills[best]
        reason = f"{rates[best]:.2f} with it, {without:.2f} without: {skills[best].raw}"
        return replace(skills[best], status="useless", raw=reason)


def _success_by_task(trajectories: Sequence[Trajectory]) -> dict[Task, float]:
    outcomes: defaultdict[Task, list[bool]] = defaultdict(list)
    for trajectory in trajectories:
        outcomes[trajectory.task].append(trajectory.success)
    return {task: sum(values) / len(values) for task, values in outcomes.items()}
