"""Which of its own attempts at a skill the policy keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from seed_opd.policy.rollout import Assignment
from seed_opd.training.useful_attempts import UsefulAttempts
from seed_opd.trajectory import Skill, Task, Trajectory

FIRST, SECOND = Task("plain", "train", 0), Task("plain", "train", 1)


def episode(task: Task, success: bool, seed: str) -> Trajectory:
    return Trajectory(task, "goal", "all", (), success, float(success), seed=seed)


@dataclass
class Writer:
    """Writes what is scripted, in order."""

    skills: Sequence[Skill]
    name = "scripted"

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        assert len(trajectories) == len(self.skills)
        return list(self.skills)


@dataclass
class Player:
    """Wins so many of the episodes with a skill as its text says."""

    played: list[Assignment] = field(default_factory=list)

    def play(self, assignments, temperature, progress):
        self.played = list(assignments)
        seen: dict[tuple[str, str], int] = {}
        return [self._episode(one, seen) for one in assignments]

    def _episode(self, one: Assignment, seen: dict[tuple[str, str], int]) -> Trajectory:
        key = (str(one.task), one.skill or "")
        seen[key] = seen.get(key, 0) + 1
        return episode(one.task, seen[key] <= int((one.skill or "0")[-1]), one.seed)


def analyze(attempts: Sequence[Sequence[Skill]], trajectories: Sequence[Trajectory]) -> tuple[list[Skill], Player]:
    player = Player()
    analyzer = UsefulAttempts([Writer(skills) for skills in attempts], player, replays=4, temperature=0.4)  # type: ignore[arg-type]
    return analyzer.analyze(trajectories), player


def test_the_attempt_that_helps_most_is_kept():
    """Two of four episodes were won without: 3 of 4 with the second attempt is better, 2 of 4 is not."""
    trajectories = [episode(FIRST, won, f"s{number}") for number, won in enumerate((True, True, False, False))]
    first, second = [Skill("", f"a{n}") for n in (2, 2, 1, 4)], [Skill("", f"b{n}") for n in (3, 2, 0, 3)]
    kept, _ = analyze([first, second], trajectories)
    assert [skill.skill for skill in kept if skill.usable] == ["b3", "a4"]
    assert [skill.status for skill in kept] == ["ok", "useless", "useless", "ok"]
    assert kept[1].raw.startswith("0.50 with it, 0.50 without")


def test_what_does_not_parse_is_not_played_and_stays_what_it_is():
    broken = Skill("", "", "unparsed", "no idea")
    kept, player = analyze([[broken, Skill("", "x1")]], [episode(FIRST, False, "s0"), episode(SECOND, False, "s1")])
    assert [skill.status for skill in kept] == ["unparsed", "ok"]
    assert [(one.task, one.skill) for one in player.played] == [(SECOND, "x1")] * 4
    assert len({one.seed for one in player.played}) == 4


def test_a_task_is_compared_with_its_own_episodes():
    trajectories = [episode(FIRST, True, "s0"), episode(SECOND, False, "s1")]
    kept, _ = analyze([[Skill("", "x3"), Skill("", "y3")]], trajectories)
    assert [skill.status for skill in kept] == ["useless", "ok"]
    assert kept[1] == replace(kept[1], skill="y3")
