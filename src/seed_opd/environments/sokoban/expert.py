"""A scripted player of Sokoban: the solver, with a share of mistakes."""

from __future__ import annotations

import random

from seed_opd.environments.sokoban.rules import DIRECTIONS, Room
from seed_opd.environments.sokoban.solver import best_move
from seed_opd.errors import UserError


class Expert:
    """Plays the first move of a shortest solution, from any room; where nothing solves the room, it walks about.

    `mistakes` is the probability, per step, of a random move instead; it needs `rng`. The same room always gives the same
    move unless `rng` is given, which also draws the walk.
    """

    def __init__(self, rng: random.Random | None = None, mistakes: float = 0.0) -> None:
        if not 0.0 <= mistakes <= 1.0:
            raise UserError(f"mistakes: {mistakes} is no probability; choose 0 to 1.")
        if mistakes and rng is None:
            raise UserError(f"mistakes {mistakes} needs random draws; give the expert a seeded rng.")
        self._rng = rng
        self._mistakes = mistakes

    def act(self, room: Room) -> str:
        """The next move."""
        if self._rng is not None and self._rng.random() < self._mistakes:
            return self._rng.choice(DIRECTIONS)
        return best_move(room) or (self._rng.choice(DIRECTIONS) if self._rng is not None else DIRECTIONS[0])


def thought(room: Room, move: str) -> str:
    """What a player would say it is doing, in three or four words."""
    after = room.moved(move)
    if after == room:
        return f"nothing is {move}"
    return f"push the box {move}" if after.boxes != room.boxes else f"walk around, go {move}"


def respond(thought: str, move: str) -> str:
    """A response in the environment's grammar."""
    return f"<think>{thought}</think><action>{move}</action>"
