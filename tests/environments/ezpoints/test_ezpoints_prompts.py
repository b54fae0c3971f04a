"""How EZPoints is prompted, as text and as pictures, and how responses become tokens."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.base import IMAGE, Situation
from seed_opd.environments.ezpoints import EzpointsEnvironment, prompts
from seed_opd.environments.ezpoints.expert import respond
from seed_opd.environments.ezpoints.formula import TOKENS
from seed_opd.environments.messages import SKILL as SKILL_TITLE

SKILL = "Type 6 * 2 =."
GOAL = "make 12 of both cards."
OBSERVATION = "Cards: 6 of clubs, 2 of hearts\nFormula: 6 *"


@pytest.mark.parametrize(
    ("response", "token", "valid"),
    [
        ('{"thoughts": "a 6 and a 2", "action": "6"}', "6", True),
        ('{"thoughts": "a 6", "action": "10"}', "10", True),  # and no 1
        ('{"action": "="}', "=", True),
        ('{"Action": "+"', "+", True),
        ('{"action": 7, "again": "7"}', "7", True),  # the same token twice is one token
        ('{"action": "6 * 2"}', "", False),
        ('{"action": "110"}', "", False),  # 1 and 10
        ('{"action": "101"}', "", False),
        ('{"action": "11"}', "1", True),
        ('{"action": "six"}', "", False),
        ('{"action" : "6"}', "", False),  # the key is looked for as it is written; the last character is no token
        ('{"action": "6"} or {"action": "2"}', "", False),
        ('{"action": "0"}', "", False),
        ("I type 6", "6", True),  # without the key, the last character
        ("I type 10", "", False),
        ("6 ", "", False),
        ("", "", False),
    ],
)
def test_responses_are_parsed_by_the_rules_of_the_reference_code(response: str, token: str, valid: bool) -> None:
    assert prompts.parse(response) == (token, valid)


def rules(response: str) -> str:
    """The same rules in other words: all tokens that are in the text behind the key, tens first and taken out."""
    place = response[response.lower().find('"action":') :]
    found = {"10"} if "10" in place else set()
    found |= {token for token in TOKENS if token in place.replace("10", "")}
    return found.pop() if len(found) == 1 else ""


@given(st.text('"action: 0123+*={}', max_size=30), st.booleans())
def test_any_response_is_a_token_or_none_and_the_span_is_where_it_stands(tail: str, key: bool) -> None:
    response = f'{{"thoughts": "x", "action": {tail}' if key else tail
    token, valid = prompts.parse(response)
    assert token == rules(response) and valid == bool(token)
    start, end = prompts.action_span(response)
    assert response[start:end] == token


@given(st.sampled_from(TOKENS), st.text("abc ", max_size=10))
def test_what_the_expert_says_is_valid_json_and_a_valid_response(token: str, thought: str) -> None:
    response = respond(thought, token)
    assert json.loads(response) == {"thoughts": thought, "action": token} and prompts.parse(response) == (token, True)


def messages(view: str, skill: str | None) -> list[str]:
    environment = EzpointsEnvironment(view=view)
    return [
        environment.windowed_prompt(Situation(GOAL, (), OBSERVATION, TOKENS), skill, 2),
        environment.opening(GOAL, OBSERVATION, skill),
    ]


@pytest.mark.parametrize("view", ["text", "image"])
def test_a_skill_stands_at_the_very_end_and_changes_nothing_else(view: str) -> None:
    for plain, skilled in zip(messages(view, None), messages(view, SKILL), strict=True):
        assert skilled == f"{plain}\n\n{SKILL_TITLE}{SKILL}"
        assert f"Your task is to: {GOAL}" in plain and "JSON" in plain


def test_as_text_the_cards_come_first_and_the_formula_is_told() -> None:
    windowed, opening = messages("text", None)
    assert windowed.startswith("Cards: 6 of clubs, 2 of hearts\n\n") and "\n\nFormula: 6 *\n\n" in windowed
    assert OBSERVATION in opening and IMAGE not in windowed + opening
    assert EzpointsEnvironment().reply(OBSERVATION) == OBSERVATION


def test_as_a_picture_it_stands_once_and_first_and_the_formula_is_still_told() -> None:
    windowed, opening = messages("image", None)
    assert windowed.startswith(IMAGE)
    for text in (windowed, opening, EzpointsEnvironment(view="image").reply(OBSERVATION)):
        assert text.count(IMAGE) == 1 and "clubs" not in text and "Formula: 6 *" in text
