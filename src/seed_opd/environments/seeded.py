"""Tasks that are made from seeds: every split is a range of seeds, and no seed is in two of them.

Training has the seeds of the reference code, 0 to 65,535. Its validation draws from 65,536 to 2^32 - 1; ours are the first
65,536 of these, so that a split can be listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from seed_opd.errors import UserError
from seed_opd.trajectory import Task

SPLITS = {"train": range(0, 2**16), "valid": range(2**16, 2**17)}


@dataclass(frozen=True)
class SeededTasks(Sequence[Task]):
    """The tasks of a split, each made only when it is asked for."""

    environment: str
    split: str
    seeds: range

    def __len__(self) -> int:
        return len(self.seeds)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        return Task(self.environment, self.split, position, self.seeds[position])


def seeded_tasks(environment: str, split: str) -> SeededTasks:
    """The tasks of a split; raises UserError, naming the splits, for an unknown one."""
    if split not in SPLITS:
        raise UserError(f"split: {split!r} is unknown to {environment}; choose one of {', '.join(SPLITS)}.")
    return SeededTasks(environment, split, SPLITS[split])


def seed_of(environment: str, task: Task) -> int:
    """The seed that a task's instance is made from; raises UserError for a task that no split has."""
    tasks = seeded_tasks(environment, task.split)
    if not 0 <= task.index < len(tasks) or task != tasks[task.index]:
        raise UserError(
            f"task: {task} does not exist; {task.split!r} of {environment} has {len(tasks)} tasks from index 0, "
            f"the first with seed {tasks.seeds[0]}."
        )
    return task.seed
