"""Splits made from seeds: disjoint, listed lazily, and each task names one seed."""

from __future__ import annotations

import pytest

from seed_opd.environments.seeded import SPLITS, seed_of, seeded_tasks
from seed_opd.errors import UserError
from seed_opd.trajectory import Task


def test_no_seed_is_in_two_splits() -> None:
    seeds = [seed for split in SPLITS for seed in SPLITS[split]]
    assert len(seeds) == len(set(seeds)) == 2 * 65536
    assert max(SPLITS["train"]) < min(SPLITS["valid"]) == 65536  # the border of the reference code


def test_tasks_are_a_sequence_that_is_made_when_asked() -> None:
    tasks = seeded_tasks("sokoban", "valid")
    assert len(tasks) == 65536 and tasks[0] == Task("sokoban", "valid", 0, 65536)
    assert (
        tasks[-1] == tasks[65535]
        and tasks[3:6] == [tasks[3], tasks[4], tasks[5]]
        and tasks[::65535] == [tasks[0], tasks[-1]]
    )
    assert list(tasks) == [tasks[index] for index in range(len(tasks))]
    with pytest.raises(IndexError):
        tasks[65536]


def test_a_task_has_the_seed_of_its_place() -> None:
    assert [seed_of("ezpoints", task) for task in seeded_tasks("ezpoints", "train")[7:9]] == [7, 8]


@pytest.mark.parametrize(
    "task", [Task("sokoban", "valid", 0), Task("sokoban", "valid", -1, 65535), Task("sokoban", "train", 65536, 65536)]
)
def test_other_tasks_are_refused(task: Task) -> None:
    with pytest.raises(UserError, match="does not exist"):
        seed_of("sokoban", task)
    with pytest.raises(UserError, match="does not exist"):
        seed_of("ezpoints", Task("sokoban", "train", 0, 0))
    with pytest.raises(UserError, match="train, valid"):
        seed_of("sokoban", Task("sokoban", "test", 0))
