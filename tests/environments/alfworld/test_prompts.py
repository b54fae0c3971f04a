"""How ALFWorld is prompted, and how responses become commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments import messages
from seed_opd.environments.alfworld import prompts
from seed_opd.environments.base import Situation
from seed_opd.trajectory import Step

SKILL = "Look for the mug in the cabinets first."
HISTORY = [Step(f"you see thing {n}.", "", f"go to desk {n}", True, 0.0) for n in range(1, 8)]


def windowed(taken: int, skill: str | None = None, window: int = 5) -> str:
    return prompts.windowed(
        Situation("find a mug.", tuple(HISTORY[:taken]), "you see a mug 1.", ("look", "take mug 1")), skill, window
    )


@pytest.mark.parametrize(
    ("response", "command", "valid"),
    [
        ("<think>a mug</think><action>go to desk 1</action>", "go to desk 1", True),
        ("<think>a\nmug</think>\n<action>\n Go To Desk 1 \n</action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),
        ("<think>a mug</think> go to desk 1", "<think>a mug</think> go to desk 1"[-30:], False),
        ("<think>杯子</think><action>look</action>", "look", False),
        ("<think>x</think><action>first</action><action>second</action>", "first", True),
        ("<think>x</think><action>never closed", "nk>x</think><action>never closed"[-30:], False),
        ("x" * 50 + "go to the desk", ("x" * 50 + "go to the desk")[-30:], False),
        ("", "", False),
        ("<think>x</think><action></action>", "", True),
    ],
)
def test_responses_are_parsed_by_the_rules_of_the_agent_layer(response: str, command: str, valid: bool) -> None:
    assert prompts.parse(response) == (command, valid)


@given(st.text("<>/actionhk \n杯A", max_size=80))
def test_the_span_is_where_the_command_stands(response: str) -> None:
    start, end = prompts.action_span(response)
    command, _ = prompts.parse(response)
    if (start, end) != (0, 0):
        assert response[start:end].lower() == command
    else:
        assert command == response[-30:].strip().lower()


def test_the_first_prompt_has_no_history() -> None:
    text = windowed(0)
    assert (
        "find a mug." in text and "you see a mug 1." in text and "'look', 'take mug 1'" in text and "Current step: 1" in text
    )
    assert "so far" not in text and "[1]" not in text


def test_later_prompts_tell_the_last_steps_with_their_numbers() -> None:
    text = windowed(7, window=3)
    assert "Steps taken so far: 7" in text and "Current step: 8" in text
    assert [n for n in range(1, 9) if f"[{n}] Observation: you see thing {n}.\n[{n}] Action: go to desk {n}" in text] == [
        5,
        6,
        7,
    ]


def test_a_window_of_nothing_tells_no_steps() -> None:
    assert "[7]" not in windowed(7, window=0)


def test_the_skill_follows_the_task_line_in_both_kinds_of_prompt() -> None:
    block = f"Your task is to: find a mug.\n\n{messages.SKILL}{SKILL}\n\n"
    opening = prompts.opening("find a mug.", "you see a mug 1.", SKILL)
    for text in (windowed(0, SKILL), windowed(7, SKILL), opening):
        assert block in text
    assert opening.endswith(SKILL + "\n\nyou see a mug 1.")
    assert "Skill" not in windowed(7) + prompts.opening("find a mug.", "you see a mug 1.", None)


def test_taking_the_skill_out_leaves_the_ordinary_prompt() -> None:
    assert windowed(7, SKILL).replace(f"\n\n{messages.SKILL}{SKILL}", "") == windowed(7)


def test_the_instructions_of_a_transcript_are_short() -> None:
    assert len(prompts.INSTRUCTIONS.split()) <= 45
