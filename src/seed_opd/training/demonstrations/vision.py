"""Sokoban and EZPoints to imitate: rooms and hands from seeds that no split has."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

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


def practice_seeds(seed: int) -> Iterator[int]:
    return count(FIRST_SEED * (seed + 1))


class SokobanTeacher(Teacher):
    """The solver, with a share of random moves."""

    def __init__(self, max_steps: int, **options: object) -> None:
        self.max_steps = max_steps
        self.environment: SokobanEnvironment = SokobanEnvironment(max_steps=max_steps, **options)  # type: ignore[arg-type]

    def lessons(self, seed: int) -> Iterator[Lesson]:
        for room_seed in practice_seeds(seed):
            room = generate(room_seed, self.environment.boxes)
            task = Task("sokoban", "practice", room_seed, room_seed)
            yield Lesson(task, "", partial(self.environment.start, room))

    def expert(self, rng: random.Random, mistakes: float) -> Pusher:
        return Pusher(self.environment, sokoban.Expert(rng, mistakes))

    def informed(self) -> Pusher:
        return Pusher(self.environment, sokoban.Expert())

    def respond(self, thought: str, command: str) -> str:
        return sokoban.respond(thought, command)


class Pusher:
    """The scripted player of Sokoban, who looks at the room itself."""

    def __init__(self, environment: SokobanEnvironment, expert: sokoban.Expert) -> None:
        self.environment = environment
        self.expert = expert
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        pass

    def act(self, observation: str, actions: Sequence[str]) -> str:
        move = self.expert.act(self.environment.room)
        self.thought = sokoban.thought(self.environment.room, move)
        return move


class EzpointsTeacher(Teacher):
    """Types solutions, with a share of random tokens."""

    def __init__(self, max_steps: int, **options: object) -> None:
        self.max_steps = max_steps
        self.environment: EzpointsEnvironment = EzpointsEnvironment(max_steps=max_steps, **options)  # type: ignore[arg-type]

    def lessons(self, seed: int) -> Iterator[Lesson]:
        for hand_seed in practice_seeds(seed):
            task = Task("ezpoints", "practice", hand_seed, hand_seed)
            yield Lesson(task, "", partial(self.environment.start, deal(hand_seed)))

    def expert(self, rng: random.Random, mistakes: float) -> Calculator:
        return Calculator(self.environment, ezpoints.Expert(rng, mistakes))

    def informed(self) -> Calculator:
        return Calculator(self.environment, ezpoints.Expert())

    def respond(self, thought: str, command: str) -> str:
        return ezpoints.respond(thought, command)


class Calculator:
    """The scripted player of EZPoints, who looks at the cards themselves."""

    def __init__(self, environment: EzpointsEnvironment, expert: ezpoints.Expert) -> None:
        self.environment = environment
        self.expert = expert
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        pass

    def act(self, observation: str, actions: Sequence[str]) -> str:
        hand, formula = self.environment.hand, self.environment.formula
        token = self.expert.act(hand, formula)
        self.thought = ezpoints.thought(hand, formula, token)
        return token
