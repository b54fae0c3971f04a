"""Scripted play as text: what the tiny policy is pretrained on.

Games come from the generator's endless stream of training rooms, never from a panel. Three kinds of episode:

- `search`: no skill in the prompt; an expert that must find things, with a share of useless steps that varies by episode, so
  that what is imitated is play of mixed quality, from which reinforcement can select;
- `workflow`: an expert's skill in the prompt, written by the rules from a plan; play that follows it straight;
- `correction`: the rules' skill about a failed episode of the same game in the prompt; play that does better.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from seed_opd.environments.alfworld.engine import Game, load
from seed_opd.environments.alfworld.environment import AlfworldEnvironment
from seed_opd.environments.alfworld.expert import Expert, InformedExpert, SearchingExpert, kind_of
from seed_opd.environments.alfworld.games import category_of
from seed_opd.environments.alfworld.generator import generate_stream
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.alfworld import advice_from_plan
from seed_opd.trajectory import Step, Task, Trajectory

Kind = Literal["search", "workflow", "correction"]

SHARES: dict[Kind, float] = {"search": 0.5, "workflow": 0.35, "correction": 0.15}
MISTAKES = (0.0, 0.2, 0.4, 0.6)
"""Shares of useless steps in `search`; each episode draws one."""

FAILING = 0.7
"""Share of useless steps in the episode that a `correction` is about; it fails more often than not."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One scripted episode; `skill` is what stands in its prompt."""

    kind: Kind
    trajectory: Trajectory
    skill: str | None


def demonstrations(seed: int, max_steps: int) -> Iterator[Demonstration]:
    """An endless, seeded stream of demonstrations; games of one seed never return under another."""
    rng = random.Random(f"demonstrations/{seed}")
    environment = AlfworldEnvironment(max_steps=max_steps)
    for index, (name, data) in enumerate(generate_stream(seed)):
        task = Task("alfworld", "generated", index, seed)
        kind = rng.choices(list(SHARES), weights=list(SHARES.values()))[0]
        yield _demonstrate(_Stage(environment, load(data), task, category_of(name)), kind, rng)


@dataclass(frozen=True, slots=True)
class _Stage:
    """A game, and where it is played."""

    environment: AlfworldEnvironment
    game: Game
    task: Task
    category: str


def _demonstrate(stage: _Stage, kind: Kind, rng: random.Random) -> Demonstration:
    if kind == "search":
        trajectory = _play(stage, SearchingExpert(rng, rng.choice(MISTAKES)))
        return Demonstration(kind, trajectory, None)
    if kind == "workflow":
        trajectory = _play(stage, None)
        commands = [step.action for step in trajectory.steps]
        return Demonstration(kind, trajectory, advice_from_plan(trajectory.goal, commands).skill)
    skill = RulesAnalyzer().analyze([_play(stage, SearchingExpert(rng, FAILING))])[0]
    return Demonstration(kind, _play(stage, None), skill.skill if skill.usable else None)


def _play(stage: _Stage, expert: Expert | None) -> Trajectory:
    """Play a game with an expert, the informed one by default, and write down its play as a model's."""
    environment = stage.environment
    first = environment.start(stage.game)
    expert = expert or InformedExpert(environment.play)
    expert.reset(first.goal, first.text)
    steps: list[Step] = []
    text, actions, done, success = first.text, first.actions or (), False, False
    while not done and len(steps) < environment.max_steps:
        command = expert.act(text, actions)
        response = respond(thought(expert, command), command)
        outcome = environment.step(command)
        steps.append(Step(text, response, command, True, outcome.reward, actions))
        text, actions, done, success = outcome.text, outcome.actions or (), outcome.done, outcome.success
    return Trajectory(stage.task, first.goal, stage.category, tuple(steps), success, float(success), text)


def respond(thought: str, command: str) -> str:
    """A response in the environment's grammar."""
    return f"<think>{thought}</think><action>{command}</action>"


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
