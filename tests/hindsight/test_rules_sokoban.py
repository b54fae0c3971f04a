"""The rules about Sokoban: what they read from an episode, and that a player who follows their words wins."""

from __future__ import annotations

import random
import re
from collections import deque

import pytest

from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban.expert import Expert, respond
from seed_opd.environments.sokoban.generator import generate
from seed_opd.environments.sokoban.rules import DIRECTIONS, Room, read_room
from seed_opd.errors import UserError
from seed_opd.hindsight.library import Library
from seed_opd.hindsight.probe import score
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.sokoban import named, write
from seed_opd.trajectory import Step, Task, Trajectory

TASK = Task("sokoban", "train", 0)
CORRIDOR = "# # # # # # #\n# P X _ _ O #\n# _ _ _ _ _ #\n# # # # # # #"
BEND = "# # # # # #\n# _ _ _ O #\n# P X _ _ #\n# _ _ _ _ #\n# # # # # #"
AROUND = ("right", "up", "right", "right", "down", "left")
TWO = "# # # # # #\n# P X _ O #\n# _ X _ O #\n# # # # # #"


def episode(room: Room, moves: list[str]) -> Trajectory:
    """What a player does in a room, cut where it is solved."""
    environment, steps, done = SokobanEnvironment(), [], False
    text = environment.start(room).text
    for move in moves:
        outcome = environment.step(move)
        steps.append(Step(text, respond("go", move), move, True, outcome.reward, DIRECTIONS))
        text, done = outcome.text, outcome.done
        if done:
            break
    return Trajectory(TASK, "push the box onto the target.", "short", tuple(steps), done, float(done), text)


def expert_episode(room: Room, expert: Expert, limit: int = 15) -> Trajectory:
    moves, live = [], room
    while len(moves) < limit and not live.solved:
        moves.append(expert.act(live))
        live = live.moved(moves[-1])
    return episode(room, moves)


# ---- what is written


def test_a_success_becomes_its_pushes() -> None:
    skill = write(episode(read_room(BEND), ["right", "right", "down", "right", "up"]))
    assert skill.skill == (
        "first stand left of the box and push it right 2 times, then stand below the box and push it up 1 time."
    )
    assert skill.summary == "the box was pushed right 2 times and the box was pushed up 1 time, and the task was done."
    assert skill.steps == ((0, "push the box right now."), (4, "push the box up now.")) and skill.usable


def test_one_push_is_the_first() -> None:
    skill = write(episode(read_room(CORRIDOR), ["right"] * 3))
    assert skill.skill == "first stand left of the box and push it right 3 times."


def test_several_boxes_are_told_apart_by_their_places() -> None:
    skill = write(episode(read_room(TWO), ["right", "right", "left", "left", "down", "right", "right"]))
    assert skill.skill == (
        "first stand left of the box at row 2, column 3 and push it right 2 times, "
        "then stand left of the box at row 3, column 3 and push it right 2 times."
    )


@pytest.mark.parametrize(
    ("room", "moves", "avoid"),
    [
        (BEND, ["up", "right", "down"], "do not push the box down to the wall"),
        (BEND, ["down", "right", "up", "left", "up", "right"], "do not waste moves"),
        (CORRIDOR, ["right"] * 2, "do not waste moves"),
        (CORRIDOR, ["left", "up", "left", "left"], "do not go left where the way is blocked"),
        (CORRIDOR, ["down", "right", "right"], "do not walk around without a push"),
        (CORRIDOR, ["still"] * 5, "do not walk around without a push"),
        (BEND, [*AROUND, "up", "left", "left", "down", "right", "right"], "do not push the box back and forth"),
    ],
)
def test_a_failure_becomes_what_went_wrong_first_and_the_right_pushes(room: str, moves: list[str], avoid: str) -> None:
    skill = write(episode(read_room(room), moves))
    assert skill.skill.startswith(f"{avoid}") and ": first stand" in skill.skill
    assert skill.summary.startswith("the task failed: ")


def test_a_corner_is_a_corner_and_the_step_is_told() -> None:
    room = read_room("# # # # # # #\n# O _ P X _ #\n# _ _ _ _ _ #\n# # # # # # #")
    skill = write(episode(room, ["up", "right", "left"]))
    assert skill.skill == (
        "do not push the box right into the corner: first stand right of the box and push it left 3 times."
    )
    assert skill.steps == ((1, "do not go right now."),)


def test_a_move_that_was_free_at_first_is_told_where_it_was_blocked() -> None:
    room = read_room(CORRIDOR.replace("P X _", "_ P X"))
    assert write(episode(room, ["left", "left", "left", "left"])).steps == ((1, "do not go left now."),)


def test_rooms_that_are_not_there_are_refused() -> None:
    lost = Trajectory(TASK, "push the box onto the target.", "short", (Step("a room", "", "up", True, 0.0),), False, 0.0, "")
    [skill] = RulesAnalyzer().analyze([lost])
    assert skill.status == "error" and "room" in skill.raw
    hopeless = read_room("# # # # #\n# X _ P #\n# _ _ O #\n# # # # #")
    with pytest.raises(UserError, match="cannot be solved"):
        write(episode(hopeless, ["left"]))
    won = episode(read_room(CORRIDOR), ["right"] * 3)
    with pytest.raises(UserError, match="not solved"):
        write(Trajectory(TASK, won.goal, "short", won.steps[:1], True, 1.0, won.steps[1].observation))


# ---- what it is worth


@pytest.mark.parametrize("boxes", [1, 2])
def test_the_rules_agree_with_themselves_in_the_probe(boxes: int) -> None:
    seen = set()
    for seed in range(60):
        trajectory = expert_episode(generate(seed, boxes), Expert(random.Random(seed), (0.0, 0.4, 0.8)[seed % 3]))
        [skill] = RulesAnalyzer().analyze([trajectory])
        assert score(skill, trajectory)["mean"] == 1.0
        seen.add(trajectory.success)
    assert seen == {True, False}


def test_the_probe_misses_what_is_not_said() -> None:
    trajectory = episode(read_room(BEND), ["right", "right", "down", "right", "up"])
    assert named(trajectory) == {"push": ["right 2 times", "up 1 time"], "side": ["left of", "below"], "mistake": []}


def follow(skill: str, room: Room) -> Room:
    """Do what a skill says: walk to each side that it names, and push."""
    for side, direction, times in re.findall(
        r"stand (above|below|left of|right of) the box and push it (\w+) (\d+) time", skill
    ):
        (box,) = room.boxes
        room = walk(room, box + {"above": -6, "below": 6, "left of": -1, "right of": 1}[side])
        for _ in range(int(times)):
            room = room.moved(direction)
    return room


def walk(room: Room, goal: int) -> Room:
    """The room after walking to a cell without a push; as it was where that cannot be done."""
    seen, waiting = {room.player}, deque([room])
    while waiting:
        live = waiting.popleft()
        if live.player == goal:
            return live
        for after in map(live.moved, DIRECTIONS):
            if after.boxes == room.boxes and after.player not in seen:
                seen.add(after.player)
                waiting.append(after)
    return room


def test_who_follows_the_words_solves_the_room() -> None:
    kinds = set()
    for seed in range(150):
        room = generate(seed)
        trajectory = expert_episode(room, Expert(random.Random(seed), (0.0, 0.3, 0.8)[seed % 3]))
        assert follow(write(trajectory).skill, room).solved, seed
        kinds.add(trajectory.success)
    assert kinds == {True, False}


def test_every_category_has_its_text_in_the_library() -> None:
    texts = [Library.of("sokoban").skill(category) for category in SokobanEnvironment.categories]
    assert len(set(texts)) == 3 and all(len(text) < 400 for text in texts)
