"""Sokoban and EZPoints to imitate: rooms and hands from seeds that no split has."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from seed_opd.environments.base import Environment, Observation
from seed_opd.environments.ezpoints import EzpointsEnvironment
from seed_opd.environments.ezpoints import expert as ezpoints
from seed_opd.environments.ezpoints.cards import deal
from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban import expert as sokoban
from seed_opd.environments.sokoban.generator import generate
from seed_opd.training.demonstrations.lesson import Lesson, Teacher
from seed_opd.trajectory import Task

FIRST_SEED = 2**40
"""Practice has the seeds from here on; splits end at 2^17."""


class Looking:
    """A scripted player that looks at the state itself: `look` gives what its expert acts on."""

    def __init__(self, look: Callable[[], tuple[Any, ...]], expert: Any, thought: Callable[..., str]) -> None:
        self.look = look
        self.expert = expert
        self.say = thought
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        pass

    def act(self, observation: str, actions: Sequence[str]) -> str:
        state = self.look()
        action: str = self.expert.act(*state)
        self.thought = self.say(*state, action)
        return action


class SeededTeacher(Teacher):
    """Teaches an environment whose tasks are made from seeds, with a share of random actions."""

    script: Any
    """The module with the scripted player: `Expert`, `thought` and `respond`."""
    plays: type[Environment]

    def lessons(self, seed: int) -> Iterator[Lesson]:
        for number in count(FIRST_SEED * (seed + 1)):
            yield Lesson(Task(self.environment.name, "practice", number, number), "", partial(self.begin, number))

    @abstractmethod
    def begin(self, seed: int) -> Observation:
        """Start the task of a seed."""

    @abstractmethod
    def look(self) -> tuple[Any, ...]:
        """The live state, as the scripted player takes it."""

    def expert(self, rng: random.Random, mistakes: float) -> Looking:
        return Looking(self.look, self.script.Expert(rng, mistakes), self.script.thought)

    def informed(self) -> Looking:
        return Looking(self.look, self.script.Expert(), self.script.thought)

    def respond(self, thought: str, command: str) -> str:
        return str(self.script.respond(thought, command))


class SokobanTeacher(SeededTeacher):
    script = sokoban
    plays = SokobanEnvironment

    def __init__(self, max_steps: int, **options: Any) -> None:
        self.max_steps = max_steps
        self.environment: SokobanEnvironment = SokobanEnvironment(**options)

    def begin(self, seed: int) -> Observation:
        return self.environment.start(generate(seed, self.environment.boxes))

    def look(self) -> tuple[Any, ...]:
        return (self.environment.room,)


class EzpointsTeacher(SeededTeacher):
    script = ezpoints
    plays = EzpointsEnvironment

    def __init__(self, max_steps: int, **options: Any) -> None:
        self.max_steps = max_steps
        self.environment: EzpointsEnvironment = EzpointsEnvironment(**options)

    def begin(self, seed: int) -> Observation:
        return self.environment.start(deal(seed))

    def look(self) -> tuple[Any, ...]:
        return self.environment.hand, self.environment.formula
