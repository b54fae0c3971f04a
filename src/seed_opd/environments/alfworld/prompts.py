"""What a language model is told in ALFWorld, and how its response becomes a command.

The windowed prompt has the fields of the SEED paper (task, step count, the last observations and actions, the current
observation, the admissible actions) in words of our own; the transcript's opening is short, since the whole episode follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seed_opd.trajectory import Step

INSTRUCTIONS = (
    "You act in a household, one command per turn. Think briefly about what to do next inside <think> </think>, "
    "then give exactly one command inside <action> </action>."
)
SKILL = "**Episode-Level Skill**\nRefer to this skill, written for the current episode, while you act.\n"
ANSWER = (
    "Now it is your turn. First reason step by step about the situation and your next move inside <think> </think> tags. "
    "Then choose one of the admissible actions and write it inside <action> </action> tags."
)
FALLBACK = 30  # how many characters at the end are tried as a command where the action tags are missing

_ACTION = re.compile(r"<action>\s*(.*?)\s*</action>", re.IGNORECASE | re.DOTALL)
_THOUGHT = re.compile(r"<think>.*</think>", re.IGNORECASE | re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def task_block(goal: str, skill: str | None) -> str:
    """The task line, and directly after it the skill, if there is one."""
    task = f"Your task is to: {goal}"
    return f"{task}\n\n{SKILL}{skill}" if skill else task


def opening(goal: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{task_block(goal, skill)}\n\n{observation}"


def windowed(
    goal: str, history: Sequence[Step], observation: str, actions: Sequence[str] | None, skill: str | None, window: int
) -> str:
    """The message of one step that is a prompt of its own; the first step has no history to tell."""
    parts = ["You are an expert agent in the text-based household environment ALFRED.", task_block(goal, skill)]
    recent = history[max(0, len(history) - window) :]
    if history:
        parts.append(f"Steps taken so far: {len(history)}.")
    if recent:
        first = len(history) - len(recent) + 1
        told = [
            f"[{n}] Observation: {step.observation}\n[{n}] Action: {step.action}" for n, step in enumerate(recent, first)
        ]
        parts.append(f"The last {len(recent)} observations and the actions you took:\n" + "\n".join(told))
    parts.append(f"Current step: {len(history) + 1}\nCurrent observation: {observation}")
    if actions is not None:
        parts.append("Admissible actions now: [" + ", ".join(f"'{action}'" for action in actions) + "]")
    return "\n\n".join([*parts, ANSWER])


def action_span(response: str) -> tuple[int, int]:
    """Where the command stands between the first action tags, without outer space; (0, 0) where there are none."""
    match = _ACTION.search(response)
    return match.span(1) if match else (0, 0)


def parse(response: str) -> tuple[str, bool]:
    """The command in lower case, and whether the response kept to the grammar.

    Without action tags the end of the response is tried. A missing thought or a Chinese character makes it invalid too;
    whether the command is admissible does not matter here.
    """
    match = _ACTION.search(response)
    command = match[1] if match else response[-FALLBACK:]
    valid = bool(match and _THOUGHT.search(response) and not _CHINESE.search(response))
    return command.strip().lower(), valid
