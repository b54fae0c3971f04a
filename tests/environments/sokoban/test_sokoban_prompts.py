"""How Sokoban is prompted, as text and as pictures, and how responses become moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.base import IMAGE, Situation
from seed_opd.environments.messages import SKILL as SKILL_TITLE
from seed_opd.environments.sokoban import SokobanEnvironment, prompts
from seed_opd.environments.sokoban.expert import respond
from seed_opd.environments.sokoban.rules import DIRECTIONS
from seed_opd.trajectory import Step

SKILL = "First stand left of the box."
GOAL = "push the box onto the target."
HISTORY = [Step(f"# room {n}", "", "up", True, -0.1) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("response", "move", "valid"),
    [
        ("<think>go</think><action>up</action>", "up", True),
        ("<think>go</think>\n<ACTION>\n Left! \n</ACTION>", "left", True),
        ("<think>go</think><action>still</action>", "still", True),
        ("<action>right</action>", "right", False),  # flagged, and made all the same
        ("<THINK>go</THINK><action>right</action>", "right", False),
        ("<think>go</think><action>left or up</action>", "up", True),  # the order of the list, not of the text
        ("<think>go</think><action>I push downwards</action>", "down", True),  # a part of a word
        ("<think>go</think><action>jump</action>", "still", False),
        ("<think>go up</think>", "still", False),
        ("<think>go</think><action>up", "still", False),
        ("up", "still", False),
        ("", "still", False),
        ("<think>a</think><action>no</action><action>up</action>", "still", False),
    ],
)
def test_responses_are_parsed_by_the_rules_of_the_reference_code(response: str, move: str, valid: bool) -> None:
    assert prompts.parse(response) == (move, valid)


@given(st.text("<>/actionhkupdwleftrgs \n", max_size=80))
def test_any_response_is_a_move_and_the_span_is_where_it_stands(response: str) -> None:
    move, valid = prompts.parse(f"<action>{response}")
    start, end = prompts.action_span(f"<action>{response}")
    assert move in (*DIRECTIONS, "still")
    assert f"<action>{response}"[start:end].lower() == (move if end else "")
    assert end or (move, valid) == ("still", False)


@given(st.sampled_from(DIRECTIONS), st.text("abc ", max_size=10))
def test_what_the_expert_says_is_a_valid_response(move: str, thought: str) -> None:
    response = respond(thought, move)
    assert prompts.parse(response) == (move, True)
    start, end = prompts.action_span(response)
    assert response[start:end] == move


def messages(view: str, skill: str | None) -> list[str]:
    environment = SokobanEnvironment(view=view)
    return [
        environment.windowed_prompt(Situation(GOAL, tuple(HISTORY), "# room now", DIRECTIONS), skill, 2),
        environment.opening(GOAL, "# room now", skill),
    ]


@pytest.mark.parametrize("view", ["text", "image"])
def test_a_skill_follows_the_task_and_changes_nothing_else(view: str) -> None:
    for plain, skilled in zip(messages(view, None), messages(view, SKILL), strict=True):
        assert f"Your task is to: {GOAL}\n\n{SKILL_TITLE}{SKILL}\n\n" in skilled
        assert skilled.replace(f"\n\n{SKILL_TITLE}{SKILL}", "") == plain


def test_as_text_the_room_and_the_last_rooms_are_told() -> None:
    windowed, opening = messages("text", None)
    assert [n for n in range(1, 6) if f"[{n}] Room:\n# room {n}\n[{n}] Move: up" in windowed] == [4, 5]
    assert "# room now" in windowed and opening.endswith("# room now")
    assert all(IMAGE not in text and "√" in text for text in (windowed, opening))
    assert SokobanEnvironment().reply("# room") == "# room"


def test_as_a_picture_it_stands_once_in_every_message_and_no_room_is_told() -> None:
    reply = SokobanEnvironment(view="image").reply("# room now")
    for text in (*messages("image", None), reply):
        assert text.count(IMAGE) == 1 and "# room" not in text
    assert "yellow crate" in messages("image", None)[0]


def test_a_window_of_nothing_tells_no_rooms() -> None:
    text = SokobanEnvironment().windowed_prompt(Situation(GOAL, tuple(HISTORY), "# room now"), None, 0)
    assert "[5]" not in text and "Admissible" not in text
