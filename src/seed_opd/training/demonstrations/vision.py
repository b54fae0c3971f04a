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


class Habitual:
    """An expert with a bad habit: with probability `mistakes`, per step, it takes one and the same action instead.

    A habit stays in what imitates it. Random mistakes do not: a low temperature leaves only the action that comes most.
    """

    def __init__(self, expert: Any, rng: random.Random, mistakes: float, habit: str) -> None:
        self.expert = expert
        self.rng = rng
        self.mistakes = mistakes
        self.habit = habit

    def act(self, *state: Any) -> str:
        better: str = self.expert.act(*state)
        return self.habit if self.rng.random() < self.mistakes else better


class SeededTeacher(Teacher):
    """Teaches an environment whose tasks are made from seeds."""

    script: Any
    """The module with the scripted player: `Expert`, `thought` and `respond`."""
    habit: str
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
        return Looking(self.look, Habitual(self.script.Expert(rng), rng, mistakes, self.habit), self.script.thought)

    def informed(self) -> Looking:
        return Looking(self.look, self.script.Expert(), self.script.thought)

    def respond(self, thought: str, command: str) -> str:
        return str(self.script.respond(thought, command))


class SokobanTeacher(SeededTeacher):
    script = sokoban
    habit = "up"
    mistakes = (0.4, 0.5, 0.6, 0.7)
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
    habit = "+"
    mistakes = (0.2, 0.3, 0.4)
    plays = EzpointsEnvironment

    def __init__(self, max_steps: int, **options: Any) -> None:
        self.max_steps = max_steps
        self.environment: EzpointsEnvironment = EzpointsEnvironment(**options)

    def begin(self, seed: int) -> Observation:
        return self.environment.start(deal(seed))

    def look(self) -> tuple[Any, ...]:
        return self.environment.hand, self.environment.formula
