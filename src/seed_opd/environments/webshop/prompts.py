"""What a language model is told in WebShop, and how its response becomes an action.

The windowed prompt has the fields of the agent-training stacks (task, step count, the last observations and actions, the
current observation, the available actions) in words of our own; the transcript's opening is short, since more follows.
Every page repeats the task; in prompts that is cut off, since the task stands above.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seed_opd.environments.webshop.pages import SEPARATOR
from seed_opd.trajectory import Step

INSTRUCTIONS = (
    "You shop online, one action per turn: search[words] or click[what the page shows]. Think briefly about what to do next "
    "inside <think> </think>, then give exactly one action inside <action> </action>."
)
SKILL = "**Episode-Level Skill**\nRefer to this skill, written for the current episode, while you act.\n"
ANSWER = (
    "Now it is your turn. First reason step by step about the page and your next move inside <think> </think> tags. "
    "Then choose one of the available actions and write it inside <action> </action> tags."
)
FALLBACK = 20  # how many characters at the end are tried as an action where the action tags are missing

_INSTRUCTION = "Instruction:"
_ACTION = re.compile(r"<action>\s*(.*?)\s*</action>", re.IGNORECASE | re.DOTALL)
_THOUGHT = re.compile(r"<think>.*</think>", re.IGNORECASE | re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def without_task(page: str) -> str:
    """A page without the task that stands in it."""
    head, separator, rest = page.partition(_INSTRUCTION + SEPARATOR)
    return head + rest.partition(SEPARATOR)[2] if separator else page


def task_block(goal: str, skill: str | None) -> str:
    """The task line, and directly after it the skill, if there is one."""
    task = f"Your task is to: {goal}"
    return f"{task}\n\n{SKILL}{skill}" if skill else task


def opening(goal: str, observation: str, skill: str | None) -> str:
    """The first message of an episode that is one conversation."""
    return f"{INSTRUCTIONS}\n\n{task_block(goal, skill)}\n\n{without_task(observation)}"


def windowed(
    goal: str, history: Sequence[Step], observation: str, actions: Sequence[str] | None, skill: str | None, window: int
) -> str:
    """The message of one step that is a prompt of its own; the first step has no history to tell."""
    parts = ["You are an expert agent in the online shop WebShop.", task_block(goal, skill)]
    recent = history[max(0, len(history) - window) :]
    if history:
        parts.append(f"Steps taken so far: {len(history)}.")
    if recent:
        first = len(history) - len(recent) + 1
        told = [
            f"[{n}] Observation: {without_task(step.observation)}\n[{n}] Action: {step.action}"
            for n, step in enumerate(recent, first)
        ]
        parts.append(f"The last {len(recent)} observations and the actions you took:\n" + "\n".join(told))
    parts.append(f"Current step: {len(history) + 1}\nCurrent observation: {without_task(observation)}")
    if actions is not None:
        parts.append("Available actions now:\n" + "\n".join(actions))
    return "\n\n".join([*parts, ANSWER])


def action_span(response: str) -> tuple[int, int]:
    """Where the action stands between the first action tags, without outer space; (0, 0) where there are none."""
    match = _ACTION.search(response)
    return match.span(1) if match else (0, 0)


def parse(response: str) -> tuple[str, bool]:
    """The action in lower case, and whether the response kept to the grammar.

    Without action tags the end of the response is tried. A missing thought or a Chinese character makes it invalid too;
    whether the action is possible on the page does not matter here.
    """
    match = _ACTION.search(response)
    action = match[1] if match else response[-FALLBACK:]
    valid = bool(match and _THOUGHT.search(response) and not _CHINESE.search(response))
    return action.strip().lower(), valid
