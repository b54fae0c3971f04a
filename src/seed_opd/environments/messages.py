"""What messages have in common: the place of a skill, the history, places for pictures, and answers in action tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from seed_opd.environments.base import Situation
from seed_opd.errors import UserError
from seed_opd.trajectory import IMAGE, Step

SKILL = "**Episode-Level Skill**\nRefer to this skill, written for the current episode, while you act.\n"

_ACTION = re.compile(r"<action>\s*(.*?)\s*</action>", re.IGNORECASE | re.DOTALL)
_THOUGHT = re.compile(r"<think>.*</think>", re.IGNORECASE | re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def with_skill(line: str, skill: str | None) -> str:
    """The line that names the task, and directly after it the skill, if there is one."""
    return f"{line}\n\n{SKILL}{skill}" if skill else line


def task_block(goal: str, skill: str | None) -> str:
    """The task line, and directly after it the skill, if there is one."""
    return with_skill(f"Your task is to: {goal}", skill)


def progress(situation: Situation, window: int, shown: Callable[[str], str] = str) -> list[str]:
    """Paragraphs about a step that is a prompt of its own; the first step has no history to tell.

    `shown` is what is told of an observation.
    """

    def told(number: int, step: Step) -> str:
        return f"[{number}] Observation: {shown(step.observation)}\n[{number}] Action: {step.action}"

    taken = len(situation.history)
    count, lines = recent(situation.history, window, told)
    return [
        *([f"Steps taken so far: {taken}."] if taken else []),
        *([f"The last {count} observations and the actions you took:\n{lines}"] if count else []),
        f"Current step: {taken + 1}\nCurrent observation: {shown(situation.observation)}",
    ]


def recent(history: Sequence[Step], window: int, told: Callable[[int, Step], str]) -> tuple[int, str]:
    """How many of the last `window` steps there are, and the lines about them; `told` writes those of step number n."""
    steps = history[max(0, len(history) - window) :]
    first = len(history) - len(steps) + 1
    return len(steps), "\n".join(told(number, step) for number, step in enumerate(steps, first))


def interleave(text: str, images: Sequence[str]) -> list[tuple[str, str | None]]:
    """Pieces of a message, each with the picture that follows it; raises UserError where places and pictures differ."""
    pieces = text.split(IMAGE) if images else [text]
    if len(pieces) != len(images) + 1:
        raise UserError(
            f"prompt: it has {len(pieces) - 1} places for pictures and {len(images)} pictures; check the environment."
        )
    return list(zip(pieces, [*images, None], strict=True))


def action_span(response: str) -> tuple[int, int]:
    """Where the action stands between the first action tags, without outer space; (0, 0) where there are none."""
    match = _ACTION.search(response)
    return match.span(1) if match else (0, 0)


def parse(response: str, fallback: int) -> tuple[str, bool]:
    """The action in lower case, and whether the response kept to the grammar.

    Without action tags the last `fallback` characters are tried. A missing thought or a Chinese character makes it invalid
    too; whether the action is possible does not matter here (reference code).
    """
    match = _ACTION.search(response)
    action = match[1] if match else response[-fallback:]
    valid = bool(match and _THOUGHT.search(response) and not _CHINESE.search(response))
    return action.strip().lower(), valid
