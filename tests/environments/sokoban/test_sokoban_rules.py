"""What moves do, by hand and by what never changes; rooms as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.sokoban.generator import generate
from seed_opd.environments.sokoban.rules import DIRECTIONS, SYMBOLS, read_room
from seed_opd.errors import UserError

ROOM = """# # # # # #
# {} #
# {} #
# {} #
# O # # # #
# # # # # #"""
"""Three boxes; the third target is in a nook that nothing is pushed into here."""
SEEDS = st.integers(0, 2**17)
MOVES = st.lists(st.sampled_from(DIRECTIONS), max_size=30)


@pytest.mark.parametrize(
    ("moves", "rows"),
    [
        (("right",), "_ O _ _ / P X X _ / _ √ _ _"),  # two boxes in a row do not move
        (("left",), "_ O _ _ / P X X _ / _ √ _ _"),  # a wall
        (("up", "up"), "P O _ _ / _ X X _ / _ √ _ _"),
        (("up", "right"), "_ S _ _ / _ X X _ / _ √ _ _"),  # on a target
        (("up", "right", "down"), "_ S _ _ / _ X X _ / _ √ _ _"),  # the box beneath is in the way
        (("down", "right"), "_ O _ _ / _ X X _ / _ S X _"),  # off its target
        (("down", "right", "up"), "_ √ _ _ / _ P X _ / _ O X _"),  # onto a target
        (("down", "right", "up", "up"), "_ √ _ _ / _ P X _ / _ O X _"),  # a box at the wall
        (("down", "right", "up", "right"), "_ √ _ _ / _ _ P X / _ O X _"),
    ],
)
def test_moves_by_hand(moves: tuple[str, ...], rows: str) -> None:
    room = read_room(ROOM.format("_ O _ _", "P X X _", "_ √ _ _"))
    for move in moves:
        room = room.moved(move)
    assert room.text() == ROOM.format(*rows.split(" / "))


@given(SEEDS, MOVES)
def test_a_move_changes_nothing_but_the_player_and_at_most_one_box(seed: int, moves: list[str]) -> None:
    room = generate(seed, 1 + seed % 3)
    for move in moves:
        after = room.moved(move)
        assert (after.walls, after.targets, after.width, after.height) == (room.walls, room.targets, 6, 6)
        assert len(after.boxes) == len(room.boxes) and len(after.boxes - room.boxes) <= 1
        assert not after.boxes & after.walls and after.player not in after.walls | after.boxes
        if after.boxes != room.boxes:
            (gone,), (new,) = room.boxes - after.boxes, after.boxes - room.boxes
            assert after.player == gone and new - gone == gone - room.player == room.steps[move]
        room = after


@given(SEEDS)
def test_a_room_is_read_back_from_its_text(seed: int) -> None:
    room = generate(seed, 1 + seed % 3)
    assert read_room(room.text()) == room


def test_places_are_rows_and_columns() -> None:
    room = read_room("# # # #\n# P X #\n# _ O #\n# # # #")
    assert room.place(room.player) == (2, 2) and [room.place(cell) for cell in room.targets] == [(3, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# # #\n# P #\n# # #",  # no box
        "# # # # #\n# P X O #\n# # # #",  # rows of different lengths
        "# # # # #\n# P X O #\n# # # # _",  # a gap in the wall
        "# # # # #\n# P X X #\n# # # # #",  # more boxes than targets
        "# # # # #\n# _ X O #\n# # # # #",  # nobody
        "# # # # #\n# P S √ #\n# # # # #",  # two
        "# # # # #\n# P X ? #\n# # # # #",
    ],
)
def test_what_is_no_room_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="room"):
        read_room(text)


@given(st.text(f"{SYMBOLS} \n?", max_size=60))
def test_any_text_is_a_room_or_one_clear_sentence(text: str) -> None:
    try:
        assert read_room(text).text().split() == text.split()
    except UserError as error:
        assert "room" in str(error)
