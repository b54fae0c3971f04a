"""What a language model is told in Search-QA, and how its response becomes a search or an answer.

The form is Search-R1's: <think>, then exactly one of <search> and <answer>; passages come back in <information>. The
wording is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seed_opd.environments.base import Situation
from seed_opd.environments.messages import recent, with_skill
from seed_opd.environments.searchqa.passages import Passage
from seed_opd.trajectory import Step

INSTRUCTIONS = (
    "You answer a question with the help of an encyclopaedia, in at most four turns. Think briefly inside <think> </think>, "
    "then give exactly one of <search> query </search> and <answer> answer </answer>."
)
ANSWER = (
    "Now it is your turn. First reason about what you know and what you still need inside <think> </think> tags. Then "
    "either search the encyclopaedia with <search> query </search> or, when you know enough, give the answer alone, without "
    "explanation, inside <answer> </answer>: exactly one of the two."
)
FIRST = "No information yet."
NOT_FOUND = "No passage matches this query."
INVALID = "Nothing was done: a turn needs exactly one of <search> query </search> and <answer> answer </answer>."
ANSWERED = "The answer is given; the episode is over."
OVER = "The episode is over."
CUT = " ..."

_TAG = re.compile(r"<(/?)(search|answer)>", re.IGNORECASE)
_ANY_TAG = re.compile(r"</?(?:think|search|answer|information)>", re.IGNORECASE)


def question_block(question: str, skill: str | None) -> str:
    """The question line, and directly after it the skill, if there is one."""
    return with_skill(f"Your question: {question}", skill)


def opening(question: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{question_block(question, skill)}\n\n{observation}"


def windowed(situation: Situation, skill: str | None, window: int) -> str:
    """The message of one turn that is a prompt of its own; the first turn has no history to tell."""
    taken = len(situation.history)
    parts = [
        "You are an expert agent that answers questions by searching an encyclopaedia.",
        question_block(situation.goal, skill),
    ]
    if taken:
        parts.append(f"Turns taken so far: {taken} of 4.")
    count, lines = recent(situation.history, window, _told)
    if count:
        parts.append(f"The last {count} results and the actions you took:\n{lines}")
    parts.append(f"Current turn: {taken + 1}\nCurrent result: {situation.observation}")
    return "\n\n".join([*parts, ANSWER])


def information(passages: Sequence[Passage], most_characters: int) -> str:
    """Passages as an observation, each text cut to so many characters and without our own tags: it is not trusted."""
    if not passages:
        return f"<information>\n{NOT_FOUND}\n</information>"
    told = [f"[{n}] {_harmless(p.title)}\n{_cut(_harmless(p.text), most_characters)}" for n, p in enumerate(passages, 1)]
    return "\n".join(["<information>", *told, "</information>"])


def action_span(response: str) -> tuple[int, int]:
    """Where the one search or answer stands, tags included; (0, 0) where there is not exactly one, or it is empty."""
    tags = list(_TAG.finditer(response))
    if len(tags) != 2:
        return 0, 0
    first, last = tags
    closed = not first[1] and last[1] and first[2].lower() == last[2].lower()
    return (first.start(), last.end()) if closed and response[first.end() : last.start()].strip() else (0, 0)


def parse(response: str) -> tuple[str, bool]:
    """The action, "<search>query</search>" or "<answer>text</answer>" with single spaces; for all else nothing, invalid."""
    start, end = action_span(response)
    if not end:
        return "", False
    kind, text = read_action(response[start:end])
    return write_action(kind, text), True


def read_action(action: str) -> tuple[str, str]:
    """Kind ("search" or "answer") and text of an action; two empty strings for anything else."""
    start, end = action_span(action)
    if not end or action.strip() != action[start:end]:
        return "", ""
    first, last = _TAG.finditer(action)
    return first[2].lower(), " ".join(action[first.end() : last.start()].split())


def write_action(kind: str, text: str) -> str:
    return f"<{kind}>{text}</{kind}>"


def respond(thought: str, action: str) -> str:
    """A response in the environment's grammar, spaced as the instructions show it."""
    kind, text = read_action(action)
    return f"<think>{thought}</think><{kind}> {text} </{kind}>"


def _harmless(text: str) -> str:
    """In one line and without tags; what is left after one is taken out could be one again."""
    while (clean := _ANY_TAG.sub("", text)) != text:
        text = clean
    return " ".join(text.split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + CUT


def _told(number: int, step: Step) -> str:
    return f"[{number}] Result: {step.observation}\n[{number}] Action: {step.action}"
