"""Wrong skills come from where they should, in the share that was asked for, and the same way each time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seed_opd.hindsight.swapped import Swapped
from seed_opd.trajectory import Skill, Task, Trajectory


class Named:
    """Names the trajectory."""

    name = "named"

    def analyze(self, trajectories):
        return [Skill("", t.seed, "ok" if t.score else "empty") for t in trajectories]


def made(count, usable=True):
    return [
        Trajectory(Task("toy", "train", n // 4), "goal", "all", (), n % 2 == 0, float(usable), seed=str(n))
        for n in range(count)
    ]


@pytest.mark.parametrize("donor", ["other_task", "opposite_outcome"])
def test_all_wrong(donor):
    trajectories = made(16)
    skills = Swapped(Named(), 1.0, donor, seed=0).analyze(trajectories)
    for own, skill in zip(trajectories, skills, strict=True):
        other = trajectories[int(skill.skill)]
        assert own.task != other.task if donor == "other_task" else own.success != other.success


def test_the_share_is_about_what_was_asked_for_and_does_not_change():
    trajectories = made(400)
    first, again = (Swapped(Named(), 0.25, "other_task", seed=3).analyze(trajectories) for _ in range(2))
    assert first == again
    assert 0.18 < sum(skill.skill != t.seed for skill, t in zip(first, trajectories, strict=True)) / 400 < 0.32


def test_no_share_changes_nothing_and_without_a_donor_the_own_skill_stays():
    trajectories = made(8)
    assert Swapped(Named(), 0.0, "other_task", seed=0).analyze(trajectories) == Named().analyze(trajectories)
    same = [replace(t, success=True) for t in trajectories]
    assert Swapped(Named(), 1.0, "opposite_outcome", seed=0).analyze(same) == Named().analyze(same)
    assert Swapped(Named(), 1.0, "other_task", seed=0).analyze(made(8, usable=False)) == Named().analyze(
        made(8, usable=False)
    )
