"""The scripted player of Sokoban."""

from __future__ import annotations

import random

import pytest

from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban.expert import Expert, thought
from seed_opd.environments.sokoban.rules import DIRECTIONS, read_room
from seed_opd.environments.sokoban.solver import distance
from seed_opd.errors import UserError


def wins(expert: Expert, rooms: int = 60, boxes: int = 1) -> tuple[int, int]:
    """Rooms won within the limit, and the steps of all."""
    environment, won, steps = SokobanEnvironment(boxes=boxes), 0, 0
    for task in environment.tasks("train")[:rooms]:
        environment.reset(task)
        for _ in range(environment.max_steps):
            steps += 1
            if environment.step(expert.act(environment.room)).success:
                won += 1
                break
    return won, steps


def test_it_wins_in_the_fewest_steps() -> None:
    environment = SokobanEnvironment()
    least = [distance(environment.room_of(task)) or 0 for task in environment.tasks("train")[:60]]
    assert wins(Expert()) == (60, sum(least))


def test_mistakes_cost_steps_and_wins() -> None:
    results = [wins(Expert(random.Random(0), mistakes)) for mistakes in (0.0, 0.3, 0.8)]
    assert results[0][0] > results[1][0] > results[2][0] > 0
    assert results[0][1] < results[1][1] < results[2][1]
    assert wins(Expert(random.Random(5), 0.3)) == wins(Expert(random.Random(5), 0.3))


def test_where_nothing_helps_it_walks_on() -> None:
    room = read_room("# # # # #\n# X _ P #\n# _ _ O #\n# # # # #")
    assert Expert().act(room) in DIRECTIONS
    assert len({Expert(random.Random(seed)).act(room) for seed in range(20)}) == 4


def test_thoughts_are_three_or_four_words_and_say_what_a_move_does() -> None:
    room = read_room("# # # # #\n# P X O #\n# _ _ _ #\n# # # # #")
    said = {move: thought(room, move) for move in DIRECTIONS}
    assert said["right"] == "push the box right" and "down" in said["down"] and said["up"] == "nothing is up"
    assert all(3 <= len(text.split()) <= 4 for text in said.values())


@pytest.mark.parametrize(("rng", "mistakes"), [(None, 0.1), (random.Random(0), 1.5), (random.Random(0), -0.1)])
def test_wrong_shares_of_mistakes_are_refused(rng: random.Random | None, mistakes: float) -> None:
    with pytest.raises(UserError, match="mistakes"):
        Expert(rng, mistakes)
