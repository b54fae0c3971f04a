"""The environment over the games of the package: tasks, reward, replay, isolation."""

from __future__ import annotations

import random

import pytest
from vault import WALKTHROUGH, game

from seed_opd.environments import make
from seed_opd.environments.alfworld import AlfworldEnvironment
from seed_opd.environments.alfworld.engine import load
from seed_opd.environments.alfworld.environment import split_introduction
from seed_opd.environments.base import Outcome
from seed_opd.errors import UserError
from seed_opd.trajectory import Task


def environment() -> AlfworldEnvironment:
    return AlfworldEnvironment(games="generated")


def test_tasks_name_games_and_are_counted_in_six_categories() -> None:
    env = environment()
    tasks = env.tasks("unseen")
    assert tasks == env.tasks("valid_unseen") == environment().tasks("unseen")
    assert [task.index for task in tasks] == list(range(len(tasks))) and {task.split for task in tasks} == {"valid_unseen"}
    assert {env.category(task) for task in tasks} == set(env.categories)


def test_the_first_observation_is_without_banner_and_task_and_the_goal_beside_it() -> None:
    env = environment()
    first = env.reset(env.tasks("train")[0])
    assert first.text.startswith("You are in the middle of a room.") and "\n" not in first.text
    assert first.goal and "Your task" not in first.text + first.goal
    assert first.actions is not None and "look" in first.actions and "help" not in first.actions


def test_help_is_understood_though_it_is_not_listed() -> None:
    env = environment()
    env.reset(env.tasks("train")[0])
    assert "Available commands" in env.step("help").text


def test_success_is_rewarded_once_at_the_step_that_reaches_it() -> None:
    env = environment()
    env.start(load(game()))
    outcomes = [env.step(command) for command in WALKTHROUGH]
    assert [outcome.reward for outcome in outcomes] == [0.0] * (len(WALKTHROUGH) - 1) + [10.0]
    assert [outcome.done for outcome in outcomes] == [False] * (len(WALKTHROUGH) - 1) + [True]
    assert (outcomes[-1].success, outcomes[-1].score) == (True, 1.0)
    after = env.step("grab coin 1")
    assert (after.reward, after.success, after.done) == (0.0, True, True)
    assert env.step("drop coin 1").reward == 0.0


def test_every_packaged_game_is_won_by_its_walkthrough() -> None:
    env = environment()
    for split in ("train", "valid_seen", "valid_unseen"):
        for task in env.tasks(split)[::6]:
            env.reset(task)
            outcomes = [env.step(command) for command in env.store.read(env.game_name(task))["walkthrough"]]
            assert outcomes[-1].success, env.game_name(task)


def play(env: AlfworldEnvironment, task: Task, rng: random.Random, steps: int = 25) -> tuple[list[str], list[Outcome]]:
    actions, outcomes = [], []
    available = env.reset(task).actions
    for _ in range(steps):
        actions.append(rng.choice([*(available or ()), "go to nowhere"]))
        outcomes.append(env.step(actions[-1]))
        available = outcomes[-1].actions
    return actions, outcomes


def test_an_episode_is_replayed_from_its_task_and_its_actions() -> None:
    env = environment()
    for task in env.tasks("seen")[:6]:
        actions, outcomes = play(env, task, random.Random(task.index))
        fresh = environment()
        fresh.reset(task)
        assert [fresh.step(action) for action in actions] == outcomes


def test_parallel_environments_do_not_see_each_other() -> None:
    tasks = environment().tasks("seen")[:4] * 2
    alone = [play(environment(), task, random.Random(i))[1] for i, task in enumerate(tasks)]
    together = [environment() for _ in tasks]
    rngs = [random.Random(i) for i in range(len(tasks))]
    available = [env.reset(task).actions for env, task in zip(together, tasks, strict=True)]
    for step in range(25):
        for i, env in enumerate(together):
            outcome = env.step(rngs[i].choice([*(available[i] or ()), "go to nowhere"]))
            available[i] = outcome.actions
            assert outcome == alone[i][step]


def test_make_builds_it_by_name_with_options() -> None:
    env = make("alfworld", games="generated")
    assert isinstance(env, AlfworldEnvironment) and env.max_steps == 30 and env.fingerprint == environment().fingerprint


def test_wrong_use_is_one_clear_sentence() -> None:
    env = environment()
    with pytest.raises(UserError, match="call reset first"):
        env.step("look")
    with pytest.raises(UserError, match="valid_unseen"):
        env.tasks("test")
    with pytest.raises(UserError, match="120 games"):
        env.reset(Task("alfworld", "valid_seen", 100000))
    with pytest.raises(UserError, match="Your task is to"):
        split_introduction("You are in a room.")
