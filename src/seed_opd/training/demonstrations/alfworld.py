"""Household play to imitate: games from the generator's endless stream of training rooms."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial

from seed_opd.environments.alfworld.engine import load
from seed_opd.environments.alfworld.environment import AlfworldEnvironment
from seed_opd.environments.alfworld.expert import Expert, InformedExpert, SearchingExpert, kind_of
from seed_opd.environments.alfworld.games import category_of
from seed_opd.environments.alfworld.generator import generate_stream
from seed_opd.hindsight.rules.alfworld import advice_from_plan
from seed_opd.training.demonstrations.lesson import Lesson, Teacher
from seed_opd.trajectory import Task, Trajectory


class AlfworldTeacher(Teacher):
    """The searching expert, and one that knows where everything is."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.environment: AlfworldEnvironment = AlfworldEnvironment()

    def lessons(self, seed: int) -> Iterator[Lesson]:
        for index, (name, data) in enumerate(generate_stream(seed)):
            task = Task("alfworld", "generated", index, seed)
            yield Lesson(task, category_of(name), partial(self.environment.start, load(data)))

    def expert(self, rng: random.Random, mistakes: float) -> Thinking:
        return Thinking(SearchingExpert(rng, mistakes))

    def informed(self) -> Thinking:
        return Thinking(InformedExpert(self.environment.play))

    def respond(self, thought: str, command: str) -> str:
        return f"<think>{thought}</think><action>{command}</action>"

    def advice(self, good: Trajectory) -> str:
        return advice_from_plan(good.goal, [step.action for step in good.steps]).skill


class Thinking:
    """An expert that says what it is doing."""

    def __init__(self, expert: Expert) -> None:
        self.expert = expert
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        self.expert.reset(goal, observation)

    def act(self, observation: str, actions: Sequence[str]) -> str:
        command = self.expert.act(observation, actions)
        self.thought = thought(self.expert, command)
        return command


def thought(expert: Expert, command: str) -> str:
    """What the expert would say it is doing; short, since every token costs."""
    wish, held = expert.wish, expert.belief.holding
    verb = command.split(" ")[0]
    if verb in ("take", "heat", "clean", "cool", "use"):
        return f"{verb} it"
    if verb in ("move", "put"):
        return "put it there"
    if held is None:
        return f"find {wish.thing}"
    if kind_of(held) != wish.thing:
        return f"put {held} away"
    if wish.under_lamp:
        return f"find {wish.place}"
    if wish.verb and held not in expert.belief.ready:
        return f"{wish.verb} {held}"
    return f"bring {held} to {wish.place}"
