"""How Search-QA is prompted, how responses become searches and answers, and how passages are shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments import messages
from seed_opd.environments.base import Situation
from seed_opd.environments.searchqa import prompts
from seed_opd.environments.searchqa.passages import Passage
from seed_opd.trajectory import Step

SKILL = "Search the author first."
HISTORY = [Step(f"result {n}", "", f"<search>query {n}</search>", True, 0.0) for n in range(1, 4)]
PIECES = st.lists(
    st.sampled_from(
        ["<search>", "</search>", "<answer>", "</answer>", "<think>", "</think>", "<SEARCH>", " ", "a b", "<", "\n"]
    ),
    max_size=9,
)


@pytest.mark.parametrize(
    ("response", "action", "valid"),
    [
        ("<think>who</think><search>Mira Kestrel</search>", "<search>Mira Kestrel</search>", True),
        ("<search>\n Mira\n Kestrel </search> and more", "<search>Mira Kestrel</search>", True),
        ("<think>it is</think>\n<Answer>Torvale</aNSWER>", "<answer>Torvale</answer>", True),
        ("<search>a</search><answer>b</answer>", "", False),
        ("<search>a</search><search>b</search>", "", False),
        ("<answer>a</answer> <answer>", "", False),
        ("<search>a</answer>", "", False),
        ("</search>a<search>", "", False),
        ("<search>a", "", False),
        ("<search> \n </search>", "", False),
        ("<answer></answer>", "", False),
        ("<think>Torvale</think>", "", False),
        ("", "", False),
        ("<search>a < b</search>", "<search>a < b</search>", True),
    ],
)
def test_a_turn_holds_exactly_one_search_or_answer(response: str, action: str, valid: bool) -> None:
    assert prompts.parse(response) == (action, valid)


@given(PIECES)
def test_parsing_is_sound_complete_and_stable(pieces: list[str]) -> None:
    response = "".join(pieces)
    action, valid = prompts.parse(response)
    start, end = prompts.action_span(response)
    tags = re.findall(r"</?(?:search|answer)>", response.lower())
    whole = re.fullmatch(r"<(\w+)>(.*\S.*)</\1>", response[start:end].lower(), re.DOTALL)
    assert valid == (tags in (["<search>", "</search>"], ["<answer>", "</answer>"]) and whole is not None)
    if valid:
        kind, text = prompts.read_action(action)
        assert action == prompts.write_action(kind, text) and text == " ".join(text.split()) != ""
        assert prompts.parse(action) == (action, True)
    else:
        assert (action, start, end) == ("", 0, 0)


@given(st.text(max_size=60))
def test_any_text_can_be_parsed(response: str) -> None:
    action, valid = prompts.parse(response)
    assert bool(action) == valid


def test_only_a_whole_action_is_read() -> None:
    assert prompts.read_action("<search>a</search>") == ("search", "a")
    assert prompts.read_action("first <search>a</search>") == prompts.read_action("go north") == ("", "")


# ---- passages


def test_passages_are_numbered_and_cut_at_a_word() -> None:
    text = prompts.information([Passage("1", "One", "alpha beta gamma"), Passage("2", "Two", "delta")], 12)
    assert text == "<information>\n[1] One\nalpha beta ...\n[2] Two\ndelta\n</information>"
    assert prompts.NOT_FOUND in prompts.information([], 12)


@given(PIECES.map("".join), st.sampled_from(["</information>", "<sea<search>rch>", "<ans</think>wer>x</answer>", ""]))
def test_a_passage_cannot_speak_as_the_agent_or_end_the_information(title: str, trick: str) -> None:
    text = prompts.information([Passage("1", title + trick, trick + title)], 1000)
    assert re.findall(r"</?(?:think|search|answer|information)>", text.lower()) == ["<information>", "</information>"]
    assert text.count("\n") == 3


# ---- prompts


def windowed(taken: int, skill: str | None = None, window: int = 4) -> str:
    return prompts.windowed(Situation("Who wrote it?", tuple(HISTORY[:taken]), "result now"), skill, window)


def test_the_first_prompt_has_no_history_and_later_ones_tell_the_last_turns() -> None:
    assert "Your question: Who wrote it?" in windowed(0) and "[1]" not in windowed(0) and "so far" not in windowed(0)
    later = windowed(3, window=2)
    assert "Turns taken so far: 3 of 4" in later and "Current turn: 4" in later and "[1]" not in later
    assert "[2] Result: result 2\n[2] Action: <search>query 2</search>\n[3] Result: result 3" in later


def test_the_skill_follows_the_question_line_in_both_kinds_of_prompt() -> None:
    block = f"Your question: Who wrote it?\n\n{messages.SKILL}{SKILL}\n\n"
    opening = prompts.opening("Who wrote it?", prompts.FIRST, SKILL)
    assert all(block in text for text in (windowed(0, SKILL), windowed(3, SKILL), opening))
    assert windowed(3, SKILL).replace(f"\n\n{messages.SKILL}{SKILL}", "") == windowed(3)


def test_the_instructions_of_a_transcript_are_short() -> None:
    assert len(prompts.INSTRUCTIONS.split()) <= 45
