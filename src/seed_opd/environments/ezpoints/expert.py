"""A scripted player of EZPoints: the solver, with a share of mistakes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from seed_opd.environments.ezpoints.cards import TARGET, Hand
from seed_opd.environments.ezpoints.formula import EQUALS, TOKENS, solutions
from seed_opd.errors import UserError


class Expert:
    """Types the next token of a formula that makes 12, or "=" where it is complete or beyond help.

    `mistakes` is the probability, per step, of a random token instead; it needs `rng`, which also draws the order of the two
    cards, once for each hand. Without it the first solution is typed.
    """

    def __init__(self, rng: random.Random | None = None, mistakes: float = 0.0) -> None:
        if not 0.0 <= mistakes <= 1.0:
            raise UserError(f"mistakes: {mistakes} is no probability; choose 0 to 1.")
        if mistakes and rng is None:
            raise UserError(f"mistakes {mistakes} needs random draws; give the expert a seeded rng.")
        self._rng = rng
        self._mistakes = mistakes

    def act(self, hand: Hand, formula: Sequence[str]) -> str:
        """The next token."""
        if self._rng is not None and self._rng.random() < self._mistakes:
            return self._rng.choice(TOKENS)
        written = tuple(formula)
        ways = [way for way in solutions([card.value for card in hand], TARGET) if way[: len(written)] == written]
        if not ways or written in ways:
            return EQUALS
        way = ways[0] if self._rng is None else self._rng.choice(ways)
        return way[len(written)]


def thought(hand: Hand, formula: Sequence[str], token: str) -> str:
    """What a player would say it is doing, in three or four words."""
    if token == EQUALS:
        return "the formula is complete"
    return f"{'first' if not formula else 'next'} I type {token}"


def respond(thought: str, token: str) -> str:
    """A response in the environment's grammar."""
    return f'{{"thoughts": "{thought}", "action": "{token}"}}'
