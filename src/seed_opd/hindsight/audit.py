"""The skill audit: what is wrong with a set of skills, flag by flag, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from seed_opd.hindsight.prompts import instructions
from seed_opd.trajectory import Outcome, Skill, SkillStatus, Trajectory

FEWEST_WORDS = 5
"""A skill of fewer words says too little (the reference code's limit for a remote analyzer)."""

LEAKED_WORDS = 6
"""This many words in a row from the instructions are a copy."""

_SUCCEEDED = ("succeeded", "successfully", "was done", "was completed", "completed the task")
_FAILED = ("failed", "did not succeed", "was not done", "was not completed", "unsuccessful")


@dataclass(frozen=True, slots=True)
class Audit:
    """`flags` per skill, in order, and how often each occurs; a skill without a flag is clean."""

    flags: tuple[tuple[str, ...], ...]
    counts: dict[str, int]

    @property
    def clean(self) -> int:
        return sum(not flags for flags in self.flags)


def audit(skills: Sequence[Skill], trajectories: Sequence[Trajectory]) -> Audit:
    """Flag each skill: its status if that is not "ok"; short, cut, leak, duplicate, contradiction otherwise."""
    seen: set[str] = set()
    flags = []
    for skill, trajectory in zip(skills, trajectories, strict=True):
        flags.append(_flags(skill, trajectory, seen) if skill.usable else (skill.status,))
        seen.add(_words(skill.skill))
    counts = Counter(flag for own in flags for flag in own)
    names = [status for status in get_args(SkillStatus) if status != "ok"] + list(_CHECKS) + ["duplicate"]
    return Audit(tuple(flags), {name: counts[name] for name in names})


def _flags(skill: Skill, trajectory: Trajectory, seen: set[str]) -> tuple[str, ...]:
    found = [name for name, check in _CHECKS.items() if check(skill, trajectory)]
    return (*found, "duplicate") if _words(skill.skill) in seen else tuple(found)


def _is_short(skill: Skill, trajectory: Trajectory) -> bool:
    return len(skill.skill.split()) < FEWEST_WORDS


def _is_cut(skill: Skill, trajectory: Trajectory) -> bool:
    """No end of a sentence: the answer was closed for length."""
    return skill.skill[-1] not in ".!?。！？)\"'"


def _leaks(skill: Skill, trajectory: Trajectory) -> bool:
    """It repeats the analyzer's instructions."""
    asked = f" {_words(instructions(trajectory.outcome))} "
    words = _words(skill.skill).split()
    runs = (words[start : start + LEAKED_WORDS] for start in range(len(words) - LEAKED_WORDS + 1))
    return any(f" {' '.join(run)} " in asked for run in runs)


def _contradicts(skill: Skill, trajectory: Trajectory) -> bool:
    """Its summary claims the other outcome, and not this one."""
    claims = _claims(skill.summary.lower())
    return bool(claims) and trajectory.outcome not in claims


def _claims(summary: str) -> set[Outcome]:
    failed = any(word in summary for word in _FAILED)
    rest = summary
    for word in _FAILED:
        rest = rest.replace(word, "")
    claims: set[Outcome] = {"failure"} if failed else set()
    return claims | {"success"} if any(word in rest for word in _SUCCEEDED) else claims


def _words(text: str) -> str:
    """Lower-case words with single spaces."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


_CHECKS = {"short": _is_short, "cut": _is_cut, "leak": _leaks, "contradiction": _contradicts}
