"""How an environment is taught: play of mixed quality alone, and good play with a skill in the prompt.

Tasks come from endless streams for practice, never from a panel. Three kinds of episode:

- `search`: no skill in the prompt; an expert that must find things out, with a share of useless steps that varies by
  episode, so that what is imitated is play of mixed quality, from which reinforcement can select;
- `workflow`: the rules' skill about a good episode of the same task in the prompt; play that follows it straight;
- `correction`: the rules' skill about a failed episode of the same task in the prompt; play that does better.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from seed_opd.environments.base import Environment, Observation
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.policy.pictures import encode
from seed_opd.trajectory import Step, Task, Trajectory

Kind = Literal["search", "workflow", "correction"]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One scripted episode; `skill` is what stands in its prompt."""

    kind: Kind
    trajectory: Trajectory
    skill: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, and questions about it with their answers, in the environment's grammar or in words."""

    page: str
    exchanges: tuple[tuple[str, str], ...]


class Expert(Protocol):
    """A scripted player; `thought` says in a few words what its last action is for."""

    thought: str

    def reset(self, goal: str, observation: str, /) -> None: ...

    def act(self, observation: str, actions: Sequence[str], /) -> str: ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """A task to practise on: `begin` starts it in the teacher's environment, as often as it is called."""

    task: Task
    category: str
    begin: Callable[[], Observation]


class Teacher(ABC):
    """Plays one environment for others to imitate."""

    shares: Mapping[Kind, float] = {"search": 0.5, "workflow": 0.35, "correction": 0.15}
    """How often each kind comes."""
    mistakes: Sequence[float] = (0.0, 0.2, 0.4, 0.6)
    """Shares of useless steps in `search`; each episode draws one."""
    failing: float = 0.7
    """Share of useless steps in the episode that a `correction` is about; it fails more often than not."""

    environment: Environment
    max_steps: int

    @abstractmethod
    def lessons(self, seed: int) -> Iterator[Lesson]:
        """An endless stream of tasks."""

    @abstractmethod
    def expert(self, rng: random.Random, mistakes: float) -> Expert:
        """A player that knows no more than it is shown."""

    @abstractmethod
    def informed(self) -> Expert:
        """A player of the lesson that has just begun, who goes straight to its end."""

    @abstractmethod
    def respond(self, thought: str, command: str) -> str:
        """A response in the environment's grammar."""

    def lesson(self, task: Task) -> Lesson:
        """A task of the environment's own splits, to measure on."""
        return Lesson(task, self.environment.category(task), partial(self.environment.reset, task))

    def readings(self, seed: int) -> Iterator[Reading]:
        """An endless stream of pages to read before play; empty where play alone teaches enough."""
        return iter(())

    def advice(self, good: Trajectory) -> str | None:
        """The skill of a straight episode; None where there is nothing to say."""
        return rules_skill(good)


def teach(teacher: Teacher, seed: int) -> Iterator[Demonstration]:
    """An endless, seeded stream of demonstrations."""
    rng = random.Random(f"demonstrations/{seed}")
    for lesson in teacher.lessons(seed):
        kind = rng.choices(list(teacher.shares), weights=list(teacher.shares.values()))[0]
        demonstration = _demonstrate(teacher, lesson, kind, rng)
        if demonstration.trajectory.success or kind == "search":  # not every task can be done straight
            yield demonstration


def rules_skill(trajectory: Trajectory) -> str | None:
    """What the rules write about an episode, if it is usable."""
    (skill,) = RulesAnalyzer().analyze([trajectory])
    return skill.skill if skill.usable else None


def _demonstrate(teacher: Teacher, lesson: Lesson, kind: Kind, rng: random.Random) -> Demonstration:
    if kind == "search":
        return Demonstration(kind, play(teacher, lesson, teacher.expert(rng, rng.choice(teacher.mistakes))), None)
    if kind == "workflow":
        good = play(teacher, lesson)
        return Demonstration(kind, good, teacher.advice(good))
    skill = rules_skill(play(teacher, lesson, teacher.expert(rng, teacher.failing)))
    return Demonstration(kind, play(teacher, lesson), skill)


def play(teacher: Teacher, lesson: Lesson, expert: Expert | None = None) -> Trajectory:
    """Play a lesson with an expert, the informed one by default, and write down its play as a model's."""
    first = lesson.begin()
    environment = teacher.environment
    expert = expert or teacher.informed()
    expert.reset(first.goal, first.text)
    steps: list[Step] = []
    text, actions, done, success, score = first.text, first.actions, False, False, 0.0
    while not done and len(steps) < teacher.max_steps:
        image = encode(environment.picture()) if environment.seen else None
        command = expert.act(text, actions or ())
        response = teacher.respond(expert.thought, command)
        outcome = environment.step(environment.parse(response).text)
        steps.append(Step(text, response, command, True, outcome.reward, actions, image=image))
        text, actions, done, success, score = outcome.text, outcome.actions, outcome.done, outcome.success, outcome.score
    return Trajectory(lesson.task, first.goal, lesson.category, tuple(steps), success, score, text)
