"""The rules of Sokoban: rooms, their text, and what a move does.

A room is a value: a move gives another room. Cells are numbered row by row, from 0 at the top left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from seed_opd.errors import UserError

WALL, FLOOR, TARGET, BOX, BOX_ON_TARGET, PLAYER, PLAYER_ON_TARGET = SYMBOLS = "#_OX√PS"
"""What the cells look like in text (reference code)."""

DIRECTIONS = ("up", "down", "left", "right")


@dataclass(frozen=True, slots=True)
class Room:
    """Walls and targets, which stay, and boxes and the player, which move; all as numbers of cells."""

    width: int
    height: int
    walls: frozenset[int]
    targets: frozenset[int]
    boxes: frozenset[int]
    player: int

    @property
    def steps(self) -> Mapping[str, int]:
        """How the number of a cell changes in each direction."""
        return steps_of(self.width)

    @property
    def placed(self) -> int:
        """How many boxes are on targets."""
        return len(self.boxes & self.targets)

    @property
    def solved(self) -> bool:
        return self.boxes <= self.targets

    def place(self, cell: int) -> tuple[int, int]:
        """The row and the column of a cell, both from 1."""
        row, column = divmod(cell, self.width)
        return row + 1, column + 1

    def moved(self, direction: str) -> Room:
        """The room after a move: the player walks, pushes one box, or stays where a wall or a second box is in the way."""
        step = self.steps[direction]
        ahead = self.player + step
        if ahead in self.walls:
            return self
        if ahead not in self.boxes:
            return Room(self.width, self.height, self.walls, self.targets, self.boxes, ahead)
        beyond = ahead + step
        if beyond in self.walls or beyond in self.boxes:
            return self
        boxes = self.boxes - {ahead} | {beyond}
        return Room(self.width, self.height, self.walls, self.targets, boxes, ahead)

    def cells(self) -> list[str]:
        """The symbol of every cell."""
        symbols = [FLOOR] * (self.width * self.height)
        for cell in self.walls:
            symbols[cell] = WALL
        for cell in self.targets:
            symbols[cell] = TARGET
        for cell in self.boxes:
            symbols[cell] = BOX_ON_TARGET if cell in self.targets else BOX
        symbols[self.player] = PLAYER_ON_TARGET if self.player in self.targets else PLAYER
        return symbols

    def text(self) -> str:
        """The room in text: one line per row, cells apart from each other by a space."""
        symbols = self.cells()
        return "\n".join(" ".join(symbols[start : start + self.width]) for start in range(0, len(symbols), self.width))


def read_room(text: str) -> Room:
    """The room of a text; raises UserError where it is none: rows of one length, walls all around, one player, as many
    boxes as targets."""
    rows = [line.split() for line in text.strip().splitlines()]
    symbols = [symbol for row in rows for symbol in row]
    width, height = len(rows[0]) if rows else 0, len(rows)
    if {len(row) for row in rows} != {width} or not set(symbols) <= set(SYMBOLS):
        raise UserError(f"room: {text!r} is not a room; give rows of one length of the symbols {' '.join(SYMBOLS)}.")

    def having(*wanted: str) -> frozenset[int]:
        return frozenset(cell for cell, symbol in enumerate(symbols) if symbol in wanted)

    players, targets = having(PLAYER, PLAYER_ON_TARGET), having(TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET)
    boxes, walls = having(BOX, BOX_ON_TARGET), having(WALL)
    border = {cell for cell in range(len(symbols)) if cell // width in (0, height - 1) or cell % width in (0, width - 1)}
    if len(players) != 1 or len(boxes) != len(targets) or not boxes or not border <= walls:
        raise UserError(
            f"room: {text!r} needs walls all around, one player, and as many boxes as targets, at least one; mend it."
        )
    return Room(width, height, walls, targets, boxes, next(iter(players)))


_STEPS: dict[int, Mapping[str, int]] = {}


def steps_of(width: int) -> Mapping[str, int]:
    """How the number of a cell changes in each direction, in a room of this width."""
    if width not in _STEPS:
        _STEPS[width] = MappingProxyType({"up": -width, "down": width, "left": -1, "right": 1})
    return _STEPS[width]
