"""Pictures: shapes, what differs shows, every drawing is its own, and nobody who does not look needs Pillow."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seed_opd.environments import make
from seed_opd.environments.alfworld import AlfworldEnvironment
from seed_opd.environments.ezpoints import EzpointsEnvironment
from seed_opd.environments.ezpoints import drawing as cards
from seed_opd.environments.ezpoints.cards import SUITS, Card
from seed_opd.environments.ezpoints.formula import TOKENS
from seed_opd.environments.play import photographer
from seed_opd.environments.sokoban import SokobanEnvironment
from seed_opd.environments.sokoban import drawing as rooms
from seed_opd.environments.sokoban.rules import SYMBOLS, read_room
from seed_opd.errors import UserError

DIFFERENT = 4.0
"""Mean absolute difference of two pictures, of 255, from which they can be told apart."""


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one.astype(int) - other).mean())


@pytest.mark.parametrize("tile", [8, 16, 37])
def test_a_room_is_its_tiles_side_by_side(tile: int) -> None:
    room = read_room("# # # # #\n# P X O #\n# _ _ √ #\n# # # # #")
    picture = rooms.picture(room, tile)
    assert picture.shape == (4 * tile, 5 * tile, 3) and picture.dtype == np.uint8
    for row, line in enumerate(room.text().splitlines()):
        for column, symbol in enumerate(line.split()):
            cell = picture[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
            assert (cell == rooms.tiles(tile)[SYMBOLS.index(symbol)]).all(), symbol


@pytest.mark.parametrize("tile", [16, 24, 37])
def test_all_tiles_can_be_told_apart(tile: int) -> None:
    for one, other in combinations(rooms.tiles(tile), 2):
        assert apart(one, other) > DIFFERENT


@pytest.mark.parametrize("size", [96, 224, 300])
def test_all_cards_and_tokens_can_be_told_apart(size: int) -> None:
    deck = [cards._card(Card(rank, suit), size) for rank in range(2, 14) for suit in SUITS]
    for some in (deck, [cards._token(token, size) for token in (*TOKENS[:-1], "")]):
        assert min(apart(one, other) for one, other in combinations(some, 2)) > DIFFERENT / 2


def test_cards_and_tokens_lie_where_they_belong_and_cover_nothing_else() -> None:
    hand, other = (Card(13, "S"), Card(2, "H")), (Card(13, "S"), Card(6, "H"))
    empty, full = (cards.picture(hand, formula, 300) for formula in ((), ("10", "+", "2", "*", "+", "10")))
    assert empty.shape == (300, 300, 3) and empty.dtype == np.uint8
    changed = (cards.picture(other, (), 300) != empty).any(axis=2)
    assert changed.any() and not changed[:, :150].any() and not changed[220:].any()
    typed = (full != empty).any(axis=2)
    assert not typed[:220].any() and all(typed[:, x : x + 45].any() for x in range(15, 285, 45))


def test_a_picture_that_is_changed_changes_no_other() -> None:
    for environment in (SokobanEnvironment(), EzpointsEnvironment()):
        environment.reset(environment.tasks("valid")[0])
        before = environment.picture().copy()
        environment.picture()[:] = 0
        assert (environment.picture() == before).all()


def test_a_text_environment_has_no_picture(tmp_path: Path) -> None:
    environment = AlfworldEnvironment(games="generated")
    environment.reset(environment.tasks("train")[0])
    assert environment.picture() is None
    with pytest.raises(UserError, match="--pictures: alfworld"):
        photographer(environment, tmp_path)()


def test_pictures_of_an_episode_are_saved_in_order(tmp_path: Path) -> None:
    environment = make("ezpoints", size=96)
    environment.reset(environment.tasks("valid")[0])
    look, seen = photographer(environment, tmp_path / "new"), []
    for token in ("+", "*"):
        look()
        seen.append(environment.picture())
        environment.step(token)
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == ["000.png", "001.png"]
    assert all((np.asarray(Image.open(file)) == picture).all() for file, picture in zip(files, seen, strict=True))


@pytest.mark.parametrize("name", ["sokoban", "ezpoints"])
def test_without_pillow_text_is_played_and_who_looks_is_told_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("canvas", f"{name}.drawing"):
        monkeypatch.delitem(sys.modules, f"seed_opd.environments.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    environment = make(name)
    environment.reset(environment.tasks("valid")[0])
    with pytest.raises(UserError, match=r"seed-opd\[vision\]"):
        environment.picture()
    with pytest.raises(UserError, match=r"seed-opd\[vision\]"):
        make(name, view="image")
