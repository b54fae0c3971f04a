"""Sokoban as an environment: rewards by hand, categories, replay, isolation, wrong use."""

from __future__ import annotations

import random

import pytest

from seed_opd.environments import data_source, make
from seed_opd.environments.base import Outcome
from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban.rules import read_room
from seed_opd.environments.sokoban.solver import distance, plan
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

ONE = "# # # # #\n# P X O #\n# _ _ _ #\n# # # # #"
TWO = "# # # # # #\n# P √ _ O #\n# _ X _ _ #\n# _ _ _ _ #\n# # # # # #"


def rewards(text: str, *actions: str) -> list[float]:
    environment = SokobanEnvironment()
    environment.start(read_room(text))
    return [environment.step(action).reward for action in actions]


def test_solving_gives_a_box_and_the_room_less_the_step() -> None:
    assert rewards(ONE, "right") == pytest.approx([10.9])


def test_every_step_costs_a_tenth_whatever_it_does() -> None:
    assert rewards(ONE, "down", "up", "left", "still", "dance", "right") == pytest.approx([-0.1] * 5 + [10.9])


SOLUTION = ("right", "right", "down", "down", "left", "up")


def test_a_box_that_leaves_its_target_costs_what_it_gave() -> None:
    """Right: off its target; right: onto the next one; at last the other box onto the first."""
    assert rewards(TWO, *SOLUTION) == pytest.approx([-1.1, 0.9, -0.1, -0.1, -0.1, 10.9])


def test_the_score_is_the_share_of_boxes_on_targets_and_success_all_of_them() -> None:
    environment = SokobanEnvironment()
    environment.start(read_room(TWO))
    outcomes = [environment.step(action) for action in ("down", "up", *SOLUTION)]
    assert [outcome.score for outcome in outcomes] == [0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert [outcome.success for outcome in outcomes] == [outcome.done for outcome in outcomes] == [False] * 7 + [True]


def test_after_success_nothing_happens_any_more() -> None:
    environment = SokobanEnvironment()
    environment.start(read_room(ONE))
    won = environment.step("right")
    assert (won.done, won.success, won.score) == (True, True, 1.0)
    after = environment.step("left")
    assert (after.reward, after.done, after.success, after.text) == (0.0, True, True, won.text)


def test_a_task_is_won_by_its_plan() -> None:
    environment = SokobanEnvironment()
    for task in environment.tasks("valid")[:40]:
        environment.reset(task)
        moves = plan(environment.room) or []
        outcomes = [environment.step(move) for move in moves]
        assert [outcome.success for outcome in outcomes] == [False] * (len(moves) - 1) + [True]
        assert sum(outcome.reward for outcome in outcomes) == pytest.approx(11 - 0.1 * len(moves))


def test_categories_are_by_the_length_of_a_shortest_solution() -> None:
    environment = SokobanEnvironment()
    tasks = environment.tasks("train")[:300]
    kinds = {task: environment.category(task) for task in tasks}
    lengths = {task: distance(environment.room_of(task)) or 0 for task in tasks}
    bounds = {"short": range(1, 5), "medium": range(5, 8), "long": range(8, 99)}
    assert set(kinds.values()) == set(environment.categories) == set(bounds)
    assert all(lengths[task] in bounds[kinds[task]] for task in tasks)
    assert min(list(kinds.values()).count(kind) for kind in bounds) > 50


def play(environment: SokobanEnvironment, task: Task, steps: int = 25) -> tuple[list[str], list[Outcome]]:
    rng = random.Random(task.index)
    available = environment.reset(task).actions or ()
    actions = [rng.choice([*available, "still", "jump"]) for _ in range(steps)]
    return actions, [environment.step(action) for action in actions]


def test_an_episode_is_replayed_from_its_task_and_its_actions_pictures_too() -> None:
    environment, fresh = SokobanEnvironment(boxes=2), SokobanEnvironment(boxes=2)
    for task in environment.tasks("valid")[:6]:
        actions, outcomes = play(environment, task)
        fresh.reset(task)
        assert [fresh.step(action) for action in actions] == outcomes
        assert (fresh.picture() == environment.picture()).all()


def test_two_live_environments_do_not_touch_each_other() -> None:
    one, other = SokobanEnvironment(), SokobanEnvironment()
    tasks = one.tasks("train")[:2]
    first, second = one.reset(tasks[0]).text, other.reset(tasks[1]).text
    one.step("up"), one.step("left")
    assert other.room.text() == second and one.reset(tasks[0]).text == first


def test_it_is_made_by_name_and_says_where_its_tasks_come_from() -> None:
    environment = make("sokoban", boxes=2, view="image")
    assert isinstance(environment, SokobanEnvironment) and environment.max_steps == 15
    assert len(environment.reset(environment.tasks("valid")[0]).text.split()) == 36 and len(environment.room.boxes) == 2
    assert "seeds" in " ".join(data_source("sokoban"))
    prints = {SokobanEnvironment(boxes=boxes).fingerprint for boxes in (1, 1, 2)}
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("options", "word"),
    [({"view": "sound"}, "view"), ({"tile": 4}, "tile"), ({"tile": 500}, "tile"), ({"boxes": 9}, "boxes")],
)
def test_wrong_options_are_one_clear_sentence(options: dict, word: str) -> None:
    with pytest.raises(UserError, match=f"^environment.options.{word}: "):
        SokobanEnvironment(**options)


def test_wrong_use_is_one_clear_sentence() -> None:
    with pytest.raises(UserError, match="call reset first"):
        SokobanEnvironment().step("up")
    with pytest.raises(UserError, match="train, valid"):
        SokobanEnvironment().tasks("valid_seen")
    with pytest.raises(UserError, match="does not exist"):
        SokobanEnvironment().reset(Task("sokoban", "train", 3, 4))
