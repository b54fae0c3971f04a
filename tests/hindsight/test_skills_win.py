"""The workflow that the rules write about a won game wins that game, when its words are taken as commands."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from seed_opd.environments.alfworld import AlfworldEnvironment
from seed_opd.environments.alfworld.expert import SearchingExpert
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.alfworld import advice_from_plan
from seed_opd.trajectory import Step, Task, Trajectory

Act = Callable[[str, Sequence[str]], str | None]


@pytest.fixture(scope="module")
def environment() -> AlfworldEnvironment:
    return AlfworldEnvironment()


def play(environment: AlfworldEnvironment, task: Task, act: Act, goal: str) -> Trajectory:
    seen = environment.reset(task)
    text, actions, success, steps = seen.text, seen.actions or (), False, []
    while len(steps) < 50 and not success and (action := act(text, actions)):
        steps.append(Step(text, action, action, True, 0.0))
        outcome = environment.step(action)
        text, actions, success = outcome.text, outcome.actions or (), outcome.success
    return Trajectory(task, goal, environment.category(task), tuple(steps), success, 0.0, text)


def commands(skill: str) -> Iterator[str]:
    """A place that is not said otherwise is gone to first."""
    for clause in re.split(r", (?:next|then) ", skill.removeprefix("first ").rstrip(".")):
        parts = [part for piece in clause.split(", ") for part in piece.split(" and ")]
        if not parts[0].startswith("go to"):
            yield "go to " + " ".join(parts[-1].split()[-2:])
        yield from (re.sub(r" with \w+ \d+ in hand$", "", part) for part in parts)


def test_workflows_win(environment: AlfworldEnvironment) -> None:
    for task in list(environment.tasks("valid_seen"))[::3]:
        first = environment.reset(task)
        expert = SearchingExpert()
        expert.reset(first.goal, first.text)
        won = play(environment, task, expert.act, first.goal)
        assert won.success
        [skill] = RulesAnalyzer().analyze([won])
        assert skill.skill == advice_from_plan(first.goal, [step.action for step in won.steps]).skill
        script = commands(skill.skill)
        assert play(environment, task, lambda text, actions, script=script: next(script, None), first.goal).success, (
            skill.skill
        )  # type: ignore[misc]
