"""The generator and the solver: every room can be solved, and a plan is as short as any."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.sokoban.generator import DEPTH, generate
from seed_opd.environments.sokoban.rules import DIRECTIONS, Room, read_room
from seed_opd.environments.sokoban.solver import best_move, distance, distances, plan
from seed_opd.errors import UserError

AWAY = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def brute_force(text: str) -> int | None:
    """The fewest moves that solve a room, by trying all of them on a grid of symbols; it shares nothing with the solver."""
    start = tuple(tuple(row.split()) for row in text.splitlines())
    seen, waiting = {start}, deque([(start, 0)])
    while waiting:
        grid, moves = waiting.popleft()
        if not any(symbol == "X" for row in grid for symbol in row):
            return moves
        for away in AWAY.values():
            new = moved(grid, away)
            if new not in seen:
                seen.add(new)
                waiting.append((new, moves + 1))
    return None


def moved(grid: tuple[tuple[str, ...], ...], away: tuple[int, int]) -> tuple[tuple[str, ...], ...]:
    ((row, column),) = [(r, c) for r, line in enumerate(grid) for c, symbol in enumerate(line) if symbol in "PS"]
    cells = {(r, c): symbol for r, line in enumerate(grid) for c, symbol in enumerate(line)}
    one, two = (row + away[0], column + away[1]), (row + 2 * away[0], column + 2 * away[1])
    if cells[one] in "X√" and cells[two] in "_O":
        cells[two] = "√" if cells[two] == "O" else "X"
        cells[one] = "O" if cells[one] == "√" else "_"
    if cells[one] in "_O":
        cells[row, column] = "O" if cells[row, column] == "S" else "_"
        cells[one] = "S" if cells[one] == "O" else "P"
    return tuple(tuple(cells[r, c] for c in range(len(grid[0]))) for r in range(len(grid)))


def play(room: Room, moves: list[str]) -> Room:
    for move in moves:
        room = room.moved(move)
    return room


@given(st.integers(0, 2**32))
def test_every_room_of_one_box_is_whole_unsolved_and_solved_by_its_plan(seed: int) -> None:
    room = generate(seed)
    moves = plan(room)
    assert moves and len(moves) == distance(room) and not room.placed and play(room, moves).solved
    assert len(room.boxes) == len(room.targets) == 1 and room.player not in room.walls | room.boxes
    assert (room.width, room.height) == (6, 6) and read_room(room.text()) == room


@given(st.integers(0, 300), st.sampled_from([1, 1, 2]))
def test_no_shorter_solution_exists(seed: int, boxes: int) -> None:
    room = generate(seed, boxes)
    assert distance(room) == brute_force(room.text())


def test_the_solver_agrees_with_trying_everything_from_every_state_of_a_room() -> None:
    room = read_room("# # # # # #\n# P _ O _ #\n# _ X # _ #\n# _ _ # # #\n# # # # # #")
    floor = frozenset(range(30)) - room.walls
    known = distances(room)
    for box in floor:
        for player in floor - {box}:
            state = Room(6, 5, room.walls, room.targets, frozenset([box]), player)
            assert known.get((player, frozenset([box]))) == brute_force(state.text())


@given(st.integers(0, 2**17))
def test_every_step_of_a_plan_comes_one_nearer_and_no_move_more(seed: int) -> None:
    room = generate(seed, 1 + seed % 3)
    left = [distance(room)]
    for move in plan(room) or ():
        near = distance(room) or 0
        assert all((distance(room.moved(other)) or near) >= near - 1 for other in DIRECTIONS if not room.moved(other).solved)
        room = room.moved(move)
        left.append(distance(room))
    assert [a - b for a, b in pairwise(left)] == [1] * (len(left) - 1) and left[-1] == 0


def test_what_cannot_be_solved_has_no_plan() -> None:
    room = read_room("# # # # #\n# X _ P #\n# _ _ O #\n# # # # #")
    assert (distance(room), plan(room), best_move(room)) == (None, None, None)
    solved = read_room("# # # # #\n# √ _ P #\n# # # # #")
    assert (distance(solved), plan(solved), best_move(solved)) == (0, [], None)


def test_a_seed_always_makes_the_same_room_and_seeds_make_different_ones() -> None:
    generate.cache_clear()
    first = [generate(seed).text() for seed in range(300)]
    generate.cache_clear()
    assert first == [generate(seed).text() for seed in reversed(range(300))][::-1]
    assert len(set(first)) > 250
    assert generate(0).text() == GOLDEN


GOLDEN = """# # # # # #
# # # _ O #
# # # _ _ #
# # # _ X #
# # # _ P #
# # # # # #"""
"""A change of it changes every task: then results with the old rooms are results on something else."""


def test_rooms_can_be_won_within_the_limit_of_the_reference_code() -> None:
    lengths = [distance(generate(seed)) or 99 for seed in range(400)]
    assert max(lengths) <= 15 < DEPTH
    assert min(lengths) == 1 and len(set(lengths)) >= 12


@pytest.mark.parametrize("boxes", [0, 4, -1])
def test_other_numbers_of_boxes_are_refused(boxes: int) -> None:
    with pytest.raises(UserError, match="1 to 3"):
        generate(0, boxes)
