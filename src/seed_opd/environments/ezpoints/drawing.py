"""Hands as pictures: two cards on a green table, and below them a place for each token of the formula."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from seed_opd.environments.canvas import Canvas, Colour, Picture, render
from seed_opd.environments.ezpoints.cards import FACES, Card, Hand
from seed_opd.environments.ezpoints.formula import LONGEST

TABLE, SLOT, CHALK = "#35654d", "#2a5140", "#ffffff"
PAPER, EDGE, RED, BLACK = "#fbfaf5", "#b9b6a8", "#cc1f2d", "#15171c"

CARD_WIDTH, CARD_HEIGHT, CARD_TOP = 0.45, 0.66, 0.05
"""Shares of the picture's side."""
CARD_LEFT = (0.033, 0.517)
_LETTERING = {"10": (0.66, 0.5), "*": (1.3, 0.43)}
"""Size and middle of what is typed, where it needs others than a single digit, as shares of its place."""

SLOT_SIZE, SLOT_LEFT, SLOT_TOP = 0.15, 0.05, 0.79


def picture(hand: Hand, formula: Sequence[str], size: int) -> Picture:
    """The table, (size, size, 3)."""
    scene = _table(size).copy()
    for left, card in zip(CARD_LEFT, hand, strict=True):
        _put(scene, _card(card, size), left, CARD_TOP)
    for place, token in enumerate(formula):
        _put(scene, _token(token, size), SLOT_LEFT + place * SLOT_SIZE, SLOT_TOP)
    return scene


def _put(scene: Picture, tile: Picture, left: float, top: float) -> None:
    x, y = round(left * len(scene)), round(top * len(scene))
    scene[y : y + tile.shape[0], x : x + tile.shape[1]] = tile


@cache
def _table(size: int) -> Picture:
    scene = render(size, size, TABLE).copy()
    for place in range(LONGEST):
        _put(scene, _token("", size), SLOT_LEFT + place * SLOT_SIZE, SLOT_TOP)
    return scene


@cache
def _token(token: str, size: int) -> Picture:
    def draw(canvas: Canvas) -> None:
        canvas.box(0.04, 0.04, 0.96, 0.96, SLOT)
        size, middle = _LETTERING.get(token, (0.8, 0.5))
        canvas.text(0.5, middle, token, size, CHALK, 0.02)

    side = round(SLOT_SIZE * size)
    return render(side, side, TABLE, draw)


@cache
def _card(card: Card, size: int) -> Picture:
    colour = RED if card.suit in "HD" else BLACK
    name = FACES[card.rank][0].upper() if card.rank in FACES else str(card.rank)

    def draw(canvas: Canvas) -> None:
        canvas.rounded(0, 0, 1, CARD_HEIGHT / CARD_WIDTH, 0.1, PAPER, EDGE, 0.02)
        canvas.text(0.5, 0.44, name, 0.72 if len(name) == 1 else 0.62, colour, 0.025)
        _SUITS[card.suit](canvas, 0.5, 1.08, 0.26, colour)

    return render(round(CARD_WIDTH * size), round(CARD_HEIGHT * size), TABLE, draw)


def _heart(canvas: Canvas, x: float, y: float, r: float, colour: Colour) -> None:
    for side in (-1, 1):
        canvas.oval(x + side * 0.48 * r, y - 0.35 * r, 0.52 * r, 0.52 * r, colour)
    canvas.polygon([(x - 0.94 * r, y - 0.11 * r), (x, y - 0.4 * r), (x + 0.94 * r, y - 0.11 * r), (x, y + r)], colour)


def _spade(canvas: Canvas, x: float, y: float, r: float, colour: Colour) -> None:
    for side in (-1, 1):
        canvas.oval(x + side * 0.46 * r, y + 0.22 * r, 0.5 * r, 0.5 * r, colour)
    canvas.polygon([(x - 0.9 * r, y + 0.02 * r), (x + 0.9 * r, y + 0.02 * r), (x, y - r)], colour)
    canvas.polygon([(x, y), (x + 0.36 * r, y + r), (x - 0.36 * r, y + r)], colour)


def _diamond(canvas: Canvas, x: float, y: float, r: float, colour: Colour) -> None:
    canvas.polygon([(x, y - r), (x + 0.76 * r, y), (x, y + r), (x - 0.76 * r, y)], colour)


def _club(canvas: Canvas, x: float, y: float, r: float, colour: Colour) -> None:
    for across, down in ((0.0, -0.5), (-0.5, 0.22), (0.5, 0.22)):
        canvas.oval(x + across * r, y + down * r, 0.46 * r, 0.46 * r, colour)
    canvas.oval(x, y, 0.2 * r, 0.2 * r, colour)
    canvas.polygon([(x, y - 0.1 * r), (x + 0.36 * r, y + r), (x - 0.36 * r, y + r)], colour)


_SUITS = {"H": _heart, "S": _spade, "D": _diamond, "C": _club}
