"""Rooms as pictures: seven tiles, drawn once for each size and put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seed_opd.environments.canvas import Canvas, Picture, render
from seed_opd.environments.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    SYMBOLS,
    TARGET,
    WALL,
    Room,
)

GROUND, GRID = "#e9e1cf", "#d8cdb4"
BRICK, MORTAR = "#6f7686", "#4b515e"
RED = "#d62828"
WOOD, EDGE, CROSS, GREEN = "#f2b134", "#8a5a12", "#b8791a", "#2f9e44"
BLUE, SKIN, DARK = "#1d5fd1", "#ffd9b0", "#10253f"


def picture(room: Room, tile: int) -> Picture:
    """A room, every cell `tile` pixels wide and high: (height * tile, width * tile, 3)."""
    numbers = _NUMBERS[np.frombuffer("".join(room.cells()).encode("utf-16-le"), dtype=np.uint16)]
    rows = tiles(tile)[numbers.reshape(room.height, room.width)]  # (height, width, tile, tile, 3)
    return rows.swapaxes(1, 2).reshape(room.height * tile, room.width * tile, 3)


@cache
def tiles(size: int) -> Picture:
    """The tiles in the order of the symbols: (symbols, size, size, 3)."""
    return np.stack([render(size, size, GROUND, _floor, *_LAYERS[symbol]) for symbol in SYMBOLS])


def _floor(canvas: Canvas) -> None:
    canvas.box(0, 0, 1, 1, GROUND, GRID, 1 / 32)


def _wall(canvas: Canvas) -> None:
    canvas.box(0, 0, 1, 1, MORTAR)
    for row in range(3):
        top = row / 3
        for left in (-0.25, 0.25, 0.75) if row % 2 else (0.0, 0.5):
            canvas.box(max(left + 0.02, 0), top + 0.02, min(left + 0.48, 1), top + 0.31, BRICK)


def _target(canvas: Canvas) -> None:
    canvas.box(0.06, 0.06, 0.94, 0.94, GROUND, RED, 0.09)
    canvas.polygon([(0.5, 0.24), (0.76, 0.5), (0.5, 0.76), (0.24, 0.5)], RED)


def _box(canvas: Canvas) -> None:
    canvas.box(0.1, 0.1, 0.9, 0.9, WOOD, EDGE, 0.09)
    for points in (((0.24, 0.24), (0.76, 0.76)), ((0.76, 0.24), (0.24, 0.76))):
        canvas.line(points, CROSS, 0.12)


def _box_on_target(canvas: Canvas) -> None:
    canvas.box(0.0, 0.0, 1.0, 1.0, GROUND, RED, 0.09)
    canvas.box(0.12, 0.12, 0.88, 0.88, GREEN, "#14532d", 0.08)
    canvas.line([(0.28, 0.52), (0.44, 0.68), (0.74, 0.34)], "#ffffff", 0.12)


def _player(canvas: Canvas) -> None:
    canvas.oval(0.5, 0.8, 0.3, 0.32, BLUE)
    canvas.box(0.0, 0.96, 1.0, 1.0, GROUND)
    canvas.oval(0.5, 0.36, 0.24, 0.24, DARK)
    canvas.oval(0.5, 0.4, 0.19, 0.19, SKIN)
    for x in (0.42, 0.58):
        canvas.oval(x, 0.4, 0.04, 0.05, DARK)


def _player_on_target(canvas: Canvas) -> None:
    canvas.box(0.06, 0.06, 0.94, 0.94, GROUND, RED, 0.09)
    _player(canvas)
    canvas.box(0.06, 0.85, 0.94, 0.94, RED)


_LAYERS: dict[str, tuple[Callable[[Canvas], None], ...]] = {
    WALL: (_wall,),
    FLOOR: (),
    TARGET: (_target,),
    BOX: (_box,),
    BOX_ON_TARGET: (_box_on_target,),
    PLAYER: (_player,),
    PLAYER_ON_TARGET: (_player_on_target,),
}

_NUMBERS: NDArray[np.intp] = np.zeros(2**16, dtype=np.intp)
"""From a symbol's code to its place among the symbols."""
_NUMBERS[[ord(symbol) for symbol in SYMBOLS]] = range(len(SYMBOLS))
