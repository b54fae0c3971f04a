"""How WebShop is prompted, and how responses become actions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments import messages
from seed_opd.environments.base import Situation
from seed_opd.environments.webshop import WebshopEnvironment, prompts
from seed_opd.trajectory import Step

GOAL = "Find me a mug with color: red"
HEAD = f"Instruction: [SEP] {GOAL} [SEP] "
HISTORY = [Step(f"{HEAD}Page {n}", "", f"click[b{n}]", True, 0.0) for n in range(1, 5)]
SKILL = "first search a red mug."


def windowed(taken: int, skill: str | None = None, window: int = 2) -> str:
    return prompts.windowed(
        Situation(GOAL, tuple(HISTORY[:taken]), f"{HEAD}Buy Now", ("click[buy now]", "click[red]")), skill, window
    )


@pytest.mark.parametrize(
    ("response", "action", "valid"),
    [
        ("<think>a mug</think><action>search[Red Mug]</action>", "search[red mug]", True),
        ("<think>a mug</think>\n<action>\n click[< Prev] \n</action>", "click[< prev]", True),
        ("<action>click[red]</action>", "click[red]", False),
        ("<think>a mug</think> click[buy now]", "<think>a mug</think> click[buy now]"[-20:], False),
        ("<think>杯子</think><action>click[red]</action>", "click[red]", False),
        ("", "", False),
    ],
)
def test_responses_are_parsed_by_the_rules_of_the_agent_layer(response: str, action: str, valid: bool) -> None:
    assert prompts.parse(response) == (action, valid)


@given(st.text("<>/actionhk []\n杯A", max_size=80))
def test_the_span_is_where_the_action_stands(response: str) -> None:
    start, end = prompts.action_span(response)
    action, _ = prompts.parse(response)
    assert response[start:end].lower() == action if (start, end) != (0, 0) else action == response[-20:].strip().lower()


def test_the_task_stands_in_a_prompt_once() -> None:
    for text in (windowed(0), windowed(4), prompts.opening(GOAL, f"WebShop [SEP] {HEAD}Search", None)):
        assert text.count(GOAL) == 1 and "Instruction:" not in text
    assert prompts.without_task(f"WebShop [SEP] {HEAD}Search") == "WebShop [SEP] Search"
    assert prompts.without_task("Thank you") == "Thank you"


def test_later_prompts_tell_the_last_steps_with_their_numbers() -> None:
    text = windowed(4)
    assert "Steps taken so far: 4" in text and "Current step: 5\nCurrent observation: Buy Now" in text
    assert "[3] Observation: Page 3\n[3] Action: click[b3]\n[4] Observation: Page 4" in text and "[2]" not in text
    assert "Available actions now:\nclick[buy now]\nclick[red]" in text


def test_the_skill_follows_the_task_line_in_both_kinds_of_prompt() -> None:
    block = f"Your task is to: {GOAL}\n\n{messages.SKILL}{SKILL}\n\n"
    opening = prompts.opening(GOAL, f"WebShop [SEP] {HEAD}Search", SKILL)
    assert all(block in text for text in (windowed(0, SKILL), windowed(4, SKILL), opening))
    assert windowed(4, SKILL).replace(f"\n\n{messages.SKILL}{SKILL}", "") == windowed(4)


def test_the_environment_cuts_the_task_off_its_replies() -> None:
    environment = WebshopEnvironment("generated")
    first = environment.reset(environment.tasks("test")[0])
    assert first.goal in environment.opening(first.goal, first.text, None)
    assert environment.reply(environment.step("search[shoes]").text).startswith(
        "Back to Search [SEP] Page 1 (Total results: "
    )


def test_what_can_be_done_is_a_search_or_the_clicks() -> None:
    environment = WebshopEnvironment("generated")
    assert environment.reset(environment.tasks("test")[0]).actions == ("search[<your query>]",)
    actions = environment.step("search[shoes]").actions or ()
    assert actions[:2] == ("click[back to search]", "click[next >]") and len(actions) == 12
