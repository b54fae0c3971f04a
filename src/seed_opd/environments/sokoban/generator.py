"""Rooms by reverse play: start from a solved room, pull the boxes away, and the room can be solved.

The steps and their numbers are those of the original's generator: a random walk carves the floor with strokes of five
shapes, player and targets get random cells, boxes are pulled from their targets, and the player takes a few steps. The
original searches depth first, to a depth of 30 and at most 300,000 states; a room of 6x6 with one box has a few hundred, so
we look at all that 30 moves reach, and choose among the best at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

from seed_opd.environments.sokoban.rules import Room, steps_of
from seed_opd.errors import UserError

SIZE = 6
WALK = int(1.7 * (SIZE + SIZE))  # strokes
TURN = 0.35  # probability that the walk turns before a stroke
DEPTH = 30  # moves of reverse play
STROKES = (
    ((0, -1), (0, 0), (0, 1)),
    ((-1, 0), (0, 0), (1, 0)),
    ((0, -1), (0, 0), (1, 0)),
    ((0, -1), (0, 0), (1, -1), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
)
"""Shapes of a stroke: what it carves, as rows and columns from where the walk is."""

WANDER, WANDER_NEAR, WANDER_ON, MOST_WANDERED = 0.5, 0.8, 0.5, 3
"""Probabilities that the player takes steps at last, also where a box is next to its target, and that it goes on."""

MOST_BOXES = 3
TRIES = 1000  # layouts; about one in four has no good room

_Pulled = tuple[int, tuple[int, ...]]  # the player, and where the box of each target is


@lru_cache(maxsize=4096)
def generate(seed: int, boxes: int = 1) -> Room:
    """The room of a seed. Raises UserError for a number of boxes that a room of this size has no place for."""
    if not 1 <= boxes <= MOST_BOXES:
        raise UserError(f"boxes: {boxes} do not fit into {SIZE}x{SIZE}; choose 1 to {MOST_BOXES}.")
    rng = random.Random(f"sokoban/{seed}/{boxes}")
    for _ in range(TRIES):
        floor = _carve(rng)
        if len(floor) > boxes + 1:
            room = _pull(rng, floor, boxes)
            if room is not None:
                return room
    raise UserError(f"seed: {seed} makes no room with {boxes} boxes; choose another one.")


def _carve(rng: random.Random) -> frozenset[int]:
    """The cells of a random walk's strokes, without the border."""
    steps = ((1, 0), (0, 1), (-1, 0), (0, -1))
    direction = rng.choice(steps)
    row, column = rng.randint(1, SIZE - 1), rng.randint(1, SIZE - 1)
    floor: set[int] = set()
    for _ in range(WALK):
        if rng.random() < TURN:
            direction = rng.choice(steps)
        row = min(max(row + direction[0], 1), SIZE - 2)
        column = min(max(column + direction[1], 1), SIZE - 2)
        floor |= {(row + down) * SIZE + column + right for down, right in rng.choice(STROKES)}
    inner = {row * SIZE + column for row in range(1, SIZE - 1) for column in range(1, SIZE - 1)}
    return frozenset(floor & inner)


def _pull(rng: random.Random, floor: frozenset[int], boxes: int) -> Room | None:
    """A room with its boxes as far from their targets as reverse play brings them; None where no box comes away."""
    player, *targets = rng.sample(sorted(floor), boxes + 1)
    best, scores = 0, {}
    for state in _reverse_play((player, tuple(targets)), floor):
        where, pulled = state
        if where not in targets and not set(pulled) & set(targets):
            scores[state] = sum(map(_apart, pulled, targets))
            best = max(best, scores[state])
    if not best:
        return None
    player, pulled = rng.choice([state for state, score in scores.items() if score == best])
    player = _wander(rng, player, floor - set(pulled), WANDER_NEAR if best == 1 else WANDER)
    walls = frozenset(range(SIZE * SIZE)) - floor
    return Room(SIZE, SIZE, walls, frozenset(targets), frozenset(pulled), player)


def _apart(cell: int, other: int) -> int:
    """Manhattan distance."""
    return abs(cell // SIZE - other // SIZE) + abs(cell % SIZE - other % SIZE)


def _reverse_play(start: _Pulled, floor: frozenset[int]) -> Iterator[_Pulled]:
    """Every state that at most `DEPTH` backward moves reach; a move away from a box pulls it along, as in the original."""
    seen, edge = {start}, [start]
    for _ in range(DEPTH):
        edge = [state for old in edge for state in _pulls(old, floor, seen)]
    yield from sorted(seen)


def _pulls(state: _Pulled, floor: frozenset[int], seen: set[_Pulled]) -> Iterator[_Pulled]:
    player, pulled = state
    for step in steps_of(SIZE).values():
        ahead, behind = player + step, player - step
        if ahead in floor and ahead not in pulled:
            after = (ahead, tuple(player if box == behind else box for box in pulled))
            if after not in seen:
                seen.add(after)
                yield after


def _wander(rng: random.Random, player: int, free: frozenset[int], probability: float) -> int:
    """Where the player is after up to three random steps that never return."""
    been = {player}
    for _ in range(MOST_WANDERED):
        ways = [player + step for step in steps_of(SIZE).values() if player + step in free - been]
        if not ways or rng.random() > probability:
            break
        player, probability = rng.choice(ways), WANDER_ON
        been.add(player)
    return player
