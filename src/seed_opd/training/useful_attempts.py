"""Stage 1 without an external analyzer: the policy's own attempts at a skill, kept where playing again with one helps.

The policy samples a few analyses of each finished episode under the schema, and plays the episode's task again with each
of them in its prompt. The best one is played once more with other seeds, since the best of several is partly luck, and
counts if it then wins more often than the episodes of that task did without.
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
        written = [list(skills) for skills in zip(*(one.analyze(trajectories) for one in self.attempts), strict=True)]
        rates = self._success(trajectories, written, "chosen")
        best = [skills[max(range(len(skills)), key=own.__getitem__)] for skills, own in zip(written, rates, strict=True)]
        again = self._success(trajectories, [[skill] for skill in best], "judged")
        without = _success_by_task(trajectories)
        return [
            _judged(skill, rate, without[trajectory.task])
            for trajectory, skill, (rate,) in zip(trajectories, best, again, strict=True)
        ]

    def _success(
        self, trajectories: Sequence[Trajectory], written: Sequence[Sequence[Skill]], seed: str
    ) -> list[list[float]]:
        """Success of the task with each skill in the prompt, by episode and skill; -1 for a skill that is not usable."""
        usable = [(row, column) for row, skills in enumerate(written) for column, one in enumerate(skills) if one.usable]
        assignments = [
            Assignment(trajectories[row].task, f"{trajectories[row].seed}/{seed}/{column}/{n}", written[row][column].skill)
            for row, column in usable
            for n in range(self.replays)
        ]
        display = Display(1)
        with display:
            played = self.player.play(assignments, self.temperature, display.episodes(len(assignments)))
        rates = [[-1.0] * len(skills) for skills in written]
        for place, (row, column) in enumerate(usable):
            episodes = played[place * self.replays : (place + 1) * self.replays]
            rates[row][column] = sum(one.success for one in episodes) / self.replays
        return rates


def _judged(skill: Skill, rate: float, without: float) -> Skill:
    if not skill.usable or rate > without:
        return skill
    return replace(skill, status="useless", raw=f"{rate:.2f} with it, {without:.2f} without: {skill.raw}")


def _success_by_task(trajectories: Sequence[Trajectory]) -> dict[Task, float]:
    outcomes: defaultdict[Task, list[bool]] = defaultdict(list)
    for trajectory in trajectories:
        outcomes[trajectory.task].append(trajectory.success)
    return {task: sum(values) / len(values) for task, values in outcomes.items()}
