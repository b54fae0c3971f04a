"""The cards of EZPoints: two of them, dealt so that their values make 12 by a sum or a product."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seed_opd.errors import UserError

TARGET = 12
SUITS = {"H": "hearts", "S": "spades", "D": "diamonds", "C": "clubs"}
FACES = {11: "jack", 12: "queen", 13: "king"}
FACE_VALUE = 10
DIVISORS = (2, 3, 4, 6)  # values with a partner that makes 12 by a product


@dataclass(frozen=True, slots=True)
class Card:
    """`rank` is 2 to 13, where 11, 12 and 13 are jack, queen and king."""

    rank: int
    suit: str

    @property
    def value(self) -> int:
        return min(self.rank, FACE_VALUE)

    @property
    def text(self) -> str:
        return f"{FACES.get(self.rank, self.rank)} of {SUITS[self.suit]}"


Hand = tuple[Card, Card]

CARDS, FORMULA = "Cards:", "Formula:"

_RANKS = {FACES.get(rank, str(rank)): rank for rank in range(2, 14)}
_LETTERS = {name: letter for letter, name in SUITS.items()}
_CARD = f"({'|'.join(_RANKS)}) of ({'|'.join(_LETTERS)})"
_STATE = re.compile(rf"{CARDS} {_CARD}, {_CARD}\n{FORMULA}((?: \S+)*)")


def deal(seed: int) -> Hand:
    """The hand of a seed: the draws of the original, in its order, from the same generator, so the same cards.

    The first rank is uniform over 2 to 13. Its partner completes 12 by a sum or, where that goes, half of the time by a
    product; it is never a face card. The order is swapped half of the time.
    """
    rng = random.Random(seed)
    suits = list(SUITS)
    first = Card(rng.randint(2, 13), rng.choice(suits))
    by_product = first.value in DIVISORS and rng.random() <= 0.5
    second = Card(TARGET // first.value if by_product else TARGET - first.value, rng.choice(suits))
    return (second, first) if rng.random() <= 0.5 else (first, second)


def tell(hand: Hand, formula: Sequence[str]) -> str:
    """The state of a game as text: the cards, and below them the formula so far."""
    return f"{CARDS} {', '.join(card.text for card in hand)}\n{' '.join([FORMULA, *formula])}"


def read(text: str) -> tuple[Hand, tuple[str, ...]]:
    """The hand and the formula of such a text; raises UserError for any other."""
    match = _STATE.fullmatch(text)
    if match is None:
        raise UserError(f"cards: {text!r} is not a state of EZPoints; give an observation of a game.")
    first, first_suit, second, second_suit, formula = match.groups()
    return (_named(first, first_suit), _named(second, second_suit)), tuple(formula.split())


def _named(rank: str, suit: str) -> Card:
    return Card(_RANKS[rank], _LETTERS[suit])
