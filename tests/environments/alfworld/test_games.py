"""Stores: the same games from a folder, a zip and a tar; splits, order, and what is said when something is missing."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from vault import game

from seed_opd.environments.alfworld import games
from seed_opd.environments.alfworld.games import category_of, open_games, open_path
from seed_opd.errors import UserError

NAMES = {
    "train/pick_and_place_simple-Mug-None-Shelf-2/trial_B": True,
    "train/pick_and_place_simple-Mug-None-Shelf-2/trial_A": True,
    "train/look_at_obj_in_light-Mug-None-DeskLamp-1/trial_C": True,
    "train/pick_two_obj_and_place-Mug-None-Shelf-2/trial_D": False,
    "valid_seen/pick_heat_then_place_in_recep-Mug-None-Shelf-2/trial_E": True,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, solvable in NAMES.items():
        file = tmp_path / "data" / "alfworld" / "json_2.1.1" / name / "game.tw-pddl"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(game(note=name) | {"solvable": solvable}))
    return tmp_path / "data" / "alfworld" / "json_2.1.1"


def as_zip(folder: Path) -> Path:
    path = folder.parent / "json_2.1.1_tw-pddl.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.tw-pddl"), reverse=True):
            archive.write(file, file.relative_to(folder.parent))
    return path


def as_tar(folder: Path) -> Path:
    path = folder.parent / "json_2.1.1.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(folder, folder.name)
    return path


def test_folder_zip_and_tar_hold_the_same_games_in_the_same_order(folder: Path) -> None:
    for store in map(open_path, (folder, as_zip(folder), as_tar(folder))):
        assert store.splits == ("train", "valid_seen")
        assert store.names("train") == tuple(
            sorted(n for n, solvable in NAMES.items() if n.startswith("train") and solvable)
        )
        assert store.names("seen") == store.names("valid_seen")
        for name in store.names("train"):
            assert store.read(name) == game(note=name)
            assert store.game(name) is store.game(name)


def test_a_second_process_finds_the_index_of_a_tar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = as_tar(folder)
    names = open_path(path).names("train")
    games._open.cache_clear()
    monkeypatch.setattr(games, "_members", lambda path: pytest.fail("the archive is unpacked again"))
    assert open_path(path).names("train") == names


def test_the_fingerprint_is_of_the_content_not_of_the_form(folder: Path) -> None:
    before = open_path(folder).fingerprint
    assert open_path(as_zip(folder)).fingerprint == before
    games._open.cache_clear()
    next(folder.rglob("*.tw-pddl")).write_text(json.dumps(game(grammar="")))
    assert open_path(folder).fingerprint != before


def test_originals_are_preferred_where_the_variable_leads_to_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(games.DATA, str(folder.parent.parent))
    assert open_games().source == open_games("original").source == folder
    assert open_games("generated").source == games.PACKAGED
    monkeypatch.delenv(games.DATA)
    assert open_games().source == games.PACKAGED


def test_missing_originals_are_an_error_that_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(games.DATA, str(tmp_path))
    with pytest.raises(UserError, match=r"alfworld/json_2\.1\.1\.tar\.xz"):
        open_games("original")
    monkeypatch.delenv(games.DATA)
    with pytest.raises(UserError, match="not set"):
        open_games("original")


def test_nothing_is_quietly_empty(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train, valid_seen"):
        open_path(folder).names("test")
    with pytest.raises(UserError, match="does not exist"):
        open_games(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no <split>/<task>"):
        open_path(tmp_path / "empty").names("train")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(UserError, match="neither"):
        open_path(tmp_path / "text")


def test_a_split_without_solvable_games_is_an_error(folder: Path) -> None:
    for file in folder.rglob("*.tw-pddl"):
        file.write_text(json.dumps({key: value for key, value in game().items() if key != "solvable"}))
    with pytest.raises(UserError, match="solvable"):
        open_path(folder).names("train")


def test_categories_come_from_the_name() -> None:
    assert category_of("pick_cool_then_place_in_recep-Mug-None-Shelf-2") == "cool"
    assert [category_of(name) for name in NAMES] == ["pick", "pick", "look", "two", "heat"]
    with pytest.raises(UserError, match="no known task"):
        category_of("train/juggle-Mug/trial")
