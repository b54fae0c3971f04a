"""How far a room is from solved: one search backwards from all solved states, exact and complete.

A state is where the player and the boxes are. Every move from it either walks or pushes; taken backwards, it walks or pulls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations

from seed_opd.environments.sokoban.rules import DIRECTIONS, Room, steps_of

State = tuple[int, frozenset[int]]


@lru_cache(maxsize=256)
def _distances(width: int, floor: frozenset[int], targets: frozenset[int], boxes: int) -> Mapping[State, int]:
    """The fewest moves from every state that can be solved, over all ways to have so many boxes on targets."""
    steps = tuple(steps_of(width).values())
    solved = [frozenset(chosen) for chosen in combinations(sorted(targets), boxes)]
    found: dict[State, int] = {(cell, goal): 0 for goal in solved for cell in floor - goal}
    waiting = deque(found)
    while waiting:
        state = waiting.popleft()
        for before in _before(state, floor, steps):
            if before not in found:
                found[before] = found[state] + 1
                waiting.append(before)
    return found


def _before(state: State, floor: frozenset[int], steps: tuple[int, ...]) -> Iterator[State]:
    """The states from which one move leads to this one."""
    player, boxes = state
    for step in steps:
        origin = player - step
        if origin in floor and origin not in boxes:
            yield origin, boxes
            if player + step in boxes:
                yield origin, boxes - {player + step} | {player}


def distances(room: Room) -> Mapping[State, int]:
    """The fewest moves that solve each state of this room's walls and targets; a state that is missing cannot be solved."""
    floor = frozenset(range(room.width * room.height)) - room.walls
    return _distances(room.width, floor, room.targets, len(room.boxes))


def distance(room: Room) -> int | None:
    """The fewest moves that solve a room, None where nothing does."""
    return distances(room).get((room.player, room.boxes))


def plan(room: Room) -> list[str] | None:
    """A shortest list of moves that solves a room, None where nothing does; of equals, the first by order of directions."""
    moves: list[str] = []
    while not room.solved:
        direction = best_move(room)
        if direction is None:
            return None
        moves.append(direction)
        room = room.moved(direction)
    return moves


def best_move(room: Room) -> str | None:
    """The first move of a shortest solution, None where the room is solved or cannot be."""
    left = distance(room)
    if not left:
        return None
    return next(direction for direction in DIRECTIONS if distance(room.moved(direction)) == left - 1)
