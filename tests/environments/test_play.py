"""Play in the terminal: how tasks, options and actions are read, and what cannot stand together."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from seed_opd.cli import app
from seed_opd.environments import make
from seed_opd.environments.play import parse_options, parse_task, play_json
from seed_opd.errors import UserError


@pytest.mark.parametrize("text", ["valid", "valid:", ":1", "valid:-1", "valid:²", "valid:1.0"])
def test_a_task_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"is not split:index; write for example valid:0"):
        parse_task(make("sokoban"), text)


def test_options_are_yaml_values() -> None:
    options = parse_options(["boxes=2", "view=image", "retriever={kind: bm25}", "games=a=b"])
    assert options == {"boxes": 2, "view": "image", "retriever": {"kind": "bm25"}, "games": "a=b"}
    for wrong in ("boxes", "=2", "boxes={"):
        with pytest.raises(UserError, match=r"^--option: "):
            parse_options([wrong])


def play(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["play", *arguments], input="")


def test_play_takes_an_environment_s_options() -> None:
    shown = play("sokoban", "--json", "--option", "boxes=3")
    assert shown.exit_code == 0 and json.loads(shown.stdout)["observation"].count("X") >= 1
    assert "boxes: '3' does not fit" in str(play("sokoban", "--option", "boxes='3'").exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "valid:0", "--file", "x"], "--file: it cannot stand beside --task"),
        (["--model", "tiny", "--json"], "--json: it cannot stand beside --model"),
        (["--model", "tiny", "--pictures", "x"], "--pictures: it cannot stand beside --model"),
        (["--model", "tiny", "--option", "boxes=2"], "--option: it cannot stand beside --model"),
    ],
)
def test_what_would_be_ignored_is_refused(arguments: list[str], said: str) -> None:
    error = play("sokoban", *arguments).exception
    assert isinstance(error, UserError) and str(error).startswith(said)


def test_who_plays_by_hand_is_not_cut() -> None:
    environment = make("sokoban")
    states: list[str] = []
    play_json(environment, environment.tasks("valid")[0], ["still"] * 20, states.append)
    assert len(states) == 21 and not json.loads(states[-1])["done"]
