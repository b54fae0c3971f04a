"""The skill schema: how an analyzer's answer looks, how it is read, and why one was not usable.

An answer is untrusted text. It is parsed as JSON and never evaluated, and whatever it is, the result is a `Skill` with a
status: nothing raises and nothing is lost. The field names are those of the reference code.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from seed_opd.trajectory import Skill, SkillStatus

SUMMARY = "episode_summary"
SKILL = "episode_skill"
SKELETON = {SUMMARY: "string", SKILL: "string"}

_PLACEHOLDERS = {
    "string",
    "str",
    "text",
    "sentence",
    "skill",
    "summary",
    SUMMARY,
    SKILL,
    "none",
    "null",
    "n/a",
    "todo",
    "tbd",
}
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)```", re.DOTALL)
_STARTS = 1000  # so that an answer of nothing but braces costs milliseconds
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


@dataclass(frozen=True, slots=True)
class Limits:
    """The most characters that a summary and a skill may have."""

    summary: int = 1000
    skill: int = 1000


def json_schema(limits: Limits) -> dict[str, Any]:
    """The JSON schema of an answer."""
    return {
        "type": "object",
        "properties": {
            SUMMARY: {"type": "string", "minLength": 1, "maxLength": limits.summary},
            SKILL: {"type": "string", "minLength": 1, "maxLength": limits.skill},
        },
        "required": [SUMMARY, SKILL],
        "additionalProperties": False,
    }


def render(skill: Skill) -> str:
    """The answer that an analyzer should have given: compact JSON, summary first. It is what stage 1 trains on."""
    return json.dumps({SUMMARY: skill.summary, SKILL: skill.skill}, ensure_ascii=False, separators=(",", ":"))


def parse(text: str, limits: Limits | None = None, analyzer: str = "") -> Skill:
    """Read an analyzer's answer; the first JSON object with a skill in it wins.

    Looked at in this order: the whole text, fenced blocks, both with trailing commas removed, and what starts at each "{".
    (The reference code also takes Python literals; they are not JSON and stay unparsed here.)
    """
    found = next((item for item in _objects(text) if isinstance(item.get(SKILL), str)), None)
    if found is None:
        return Skill("", "", "unparsed", _printable(text), analyzer)
    summary = found.get(SUMMARY)
    summary, skill = _clean(summary if isinstance(summary, str) else ""), _clean(found[SKILL])
    return Skill(summary, skill, _status(summary, skill, limits or Limits()), _printable(text), analyzer)


def _status(summary: str, skill: str, limits: Limits) -> SkillStatus:
    bare = skill.strip(string.punctuation + string.whitespace).lower()
    if not bare:
        return "empty"
    if bare in _PLACEHOLDERS:
        return "placeholder"
    if len(summary) > limits.summary or len(skill) > limits.skill:
        return "too_long"
    return "ok"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    blocks = [text, *_FENCE.findall(text)]
    for block in [*blocks, *(_TRAILING_COMMA.sub(r"\1", block) for block in blocks)]:
        yield from _decoded(block.strip(), 0)
    for start in islice(re.finditer(r"\{", text), _STARTS):
        yield from _decoded(text, start.start())


def _decoded(text: str, start: int) -> Iterator[dict[str, Any]]:
    """The JSON object at a position, if there is one; from position 0 it may be followed by anything as well."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):  # a huge integer is a ValueError, deep nesting a RecursionError
        return
    if isinstance(value, dict):
        yield value


def _clean(text: str) -> str:
    return _printable(text).strip(string.whitespace)


def _printable(text: str) -> str:
    """Replace lone surrogates, which JSON can spell and UTF-8 cannot."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
