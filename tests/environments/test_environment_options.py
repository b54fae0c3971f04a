"""Every environment: options are checked by name and type, data are opened late, and results name them alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seed_opd.environments import NAMES, WrongOption, make
from seed_opd.errors import UserError

DATA = {"alfworld": {"games": "generated"}, "webshop": {"catalogue": "generated"}, "search": {"questions": "generated"}}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("sokoban", {"vieww": "image"}, "vieww: 'image' belongs to no option; there are view, boxes, tile."),
        ("sokoban", {"boxes": "2"}, "boxes: '2' does not fit: input should be a valid integer."),
        ("sokoban", {"tile": "16"}, "tile: '16' does not fit: input should be a valid integer."),
        ("sokoban", {"boxes": True}, "boxes: True does not fit: input should be a valid integer."),
        ("sokoban", {"boxes": 9}, "boxes: 9 do not fit into the room; choose 1 to 3."),
        ("sokoban", {"view": "sound"}, "view: 'sound' does not fit: input should be 'text' or 'image'."),
        ("ezpoints", {"size": None}, "size: None does not fit: input should be a valid integer."),
        ("alfworld", {"max_steps": 9}, "max_steps: 9 belongs to no option; there are games."),
        ("alfworld", {"games": 3}, "games: 3 does not fit: input should be a valid string."),
        ("alfworld", {"name": "x"}, "name: 'x' belongs to no option"),
        ("webshop", {"drop_goals_without_product": "no"}, "drop_goals_without_product: 'no' does not fit"),
        ("search", {"passages": 0}, "passages: 0 is no whole number"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_what_to_do(name: str, options: dict, said: str) -> None:
    with pytest.raises(WrongOption, match=rf"^environment\.options\.{re.escape(said)}"):
        make(name, **options)


@pytest.mark.parametrize(("name", "option"), [("alfworld", "games"), ("webshop", "catalogue"), ("search", "questions")])
def test_a_path_that_leads_nowhere_is_named(name: str, option: str) -> None:
    with pytest.raises(UserError, match=rf"^environment\.options\.{option}: .*/nowhere.*; give a folder"):
        make(name, **{option: "/nowhere"})


@pytest.mark.parametrize("name", NAMES)
def test_the_example_can_be_played_and_data_are_named_by_sixteen_digits(name: str) -> None:
    environment = make(name, **DATA.get(name, {}))
    split, _, index = environment.example.partition(":")
    assert environment.reset(environment.tasks(split)[int(index)]).goal and environment.packaged
    assert re.fullmatch(r"[0-9a-f]{16}", environment.fingerprint)


def test_a_folder_of_questions_shows_its_first_split(tmp_path: Path) -> None:
    for split in ("b", "a"):
        (tmp_path / f"{split}.jsonl").write_text('{"question": "q", "golden_answers": ["x"]}')
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "contents": "\\"A\\"\\ntext"}')
    environment = make("search", questions=str(tmp_path))
    assert environment.example == "a:0" and not environment.packaged
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(UserError, match=r"corpus.jsonl is missing"):
        make("search", questions=str(tmp_path))


def test_making_an_environment_opens_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def opened(*_: object, **__: object) -> None:
        pytest.fail("data are opened")

    monkeypatch.setattr("seed_opd.environments.webshop.environment.open_source", opened)
    monkeypatch.setattr("seed_opd.environments.searchqa.environment.open_retriever", opened)
    monkeypatch.setattr("seed_opd.environments.alfworld.games._as_zip", opened)
    for name, options in DATA.items():
        make(name, **options)
    make("search", questions="generated", retriever="http://127.0.0.1:9")
    assert not make("alfworld", games=str(_tar(tmp_path))).packaged


def _tar(folder: Path) -> Path:
    path = folder / "games.tar.xz"
    path.write_bytes(b"not opened")
    return path
