"""Hindsight about a question-answering (Search-QA) episode, by rules, from its text alone.

A success becomes a workflow: what to search, what to find there, what to search next, what to answer. A failure becomes a
correction ("do not ...") and the right order, in the question's own words, as the right answer is not known. The sentences
are short and regular, so that a very small model can learn to write them and to follow them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from seed_opd.trajectory import Skill, Trajectory

Mistake = Literal[
    "unanswered",
    "no_action",
    "not_searched",
    "whole_question",
    "repeated",
    "unread",
    "early",
    "misread",
]

NAME = "rules"
MOST_WORDS = 12
"""A query or an answer is told up to this many words; it is a model's text and can be of any length."""

WHOLE = 0.8
"""A query with this share of the question's words is the whole question."""

_AVOID: dict[Mistake, str] = {
    "unanswered": "do not end without an answer",
    "no_action": "do not take a turn without one search or one answer",
    "not_searched": "do not answer {culprit} before a search",
    "whole_question": "do not search the whole question",
    "repeated": "do not search {culprit} again",
    "unread": "do not answer {culprit}, no passage says it",
    "early": "do not answer {culprit} after one search",
    "misread": "do not answer {culprit}, the question asks for another fact",
}
_REASON: dict[Mistake, str] = {
    "unanswered": "no answer was given",
    "no_action": "most turns were neither a search nor an answer",
    "not_searched": "{culprit} was answered without a search",
    "whole_question": "the whole question was searched",
    "repeated": "{culprit} was searched again",
    "unread": "{culprit} was answered and no passage said it",
    "early": "{culprit} was answered too early",
    "misread": "{culprit} was answered and the question asked for another fact",
}

_BY_ANSWER: tuple[Mistake, ...] = ("not_searched", "unread", "early", "misread")

_ACTION = re.compile(r"\s*<(search|answer)>(.*)</\1>\s*", re.DOTALL)
_ROLE = re.compile(r"\bthe (\w+) of\b")
_ASKS_FOR_ROLE = re.compile(r"(?:who|what|which) (?:is|was|are|were) the \w+ of\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_PASSAGE = re.compile(r"^\[\d+\] (.+)\n(.*)$", re.MULTILINE)
_NAMES = re.compile(r"(?:[A-Z0-9][\w'’.-]*)(?: (?:(?:of|the|and|de|von|van|in) )?[A-Z0-9][\w'’.-]*)*")
_OPENERS = frozenset(
    _WORD.findall(
        "who whose whom what which when where why how in on at by from with if of "
        "is are was were do does did can has have a an the"
    )
)


@dataclass(frozen=True, slots=True)
class Search:
    """A query, and the passages that it brought, as they were shown."""

    query: str
    shown: str
    step: int


Path = tuple[tuple[Search, str], ...]
"""Searches in their order, each with what was found there."""


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The facts of one episode.

    `path` holds, after a success, the searches that led to the answer, each with what was found there; it is empty where
    no passage said the answer. `name` is what the question names, `roles` how it describes what lies between that and the
    answer, the nearest to the name first. `mistake` is None after a success; `culprit` is the query or answer of it, which
    was given at `step`.
    """

    success: bool
    answer: str
    path: Path
    name: str
    roles: tuple[str, ...]
    mistake: Mistake | None = None
    culprit: str = ""
    step: int | None = None


def write(trajectory: Trajectory) -> Skill:
    """The skill about a finished episode; status "error" where its text does not show how the answer was found."""
    known = facts(trajectory)
    steps = _step_skills(known, trajectory)
    if known.mistake:
        reason = _REASON[known.mistake].format(culprit=known.culprit)
        avoid = _AVOID[known.mistake].format(culprit=known.culprit)
        return Skill(f"the episode failed: {reason}.", f"{avoid}: {_order(known)}", analyzer=NAME, steps=steps)
    if not known.path:
        return Skill("", "", "error", "the episode's text does not show where the answer was found", NAME)
    summary = f"{known.answer} was found by searching {_short(known.path[-1][0].query)}, and the answer was right."
    return Skill(summary, _workflow(known), analyzer=NAME, steps=steps)


def named(trajectory: Trajectory) -> dict[str, list[str]]:
    """The names that a good skill about an episode mentions, by part; a part that an episode does not have is left out.

    After a success: the queries, what was found on the way, the answer. After a failure: what the question names, its
    roles, and the wrong answer or query.
    """
    known = facts(trajectory)
    if known.mistake:
        parts = {"query": [known.name], "found": list(known.roles), "answer": [known.culprit] if known.culprit else []}
    else:
        queries = [_short(search.query) for search, _ in known.path]
        found = [name for _, name in known.path[:-1] if name]
        parts = {"query": queries, "found": found, "answer": [known.answer]}
    return {part: names for part, names in parts.items() if names}


def facts(trajectory: Trajectory) -> Hindsight:
    """Read the facts of a finished episode."""
    shown = [*(step.observation for step in trajectory.steps), trajectory.final_observation][1:]
    searches, answer, answered = [], "", None
    for index, (step, text) in enumerate(zip(trajectory.steps, shown, strict=True)):
        kind, content = _read(step.action)
        if kind == "search":
            searches.append(Search(content, text, index))
        elif kind == "answer":
            answer, answered = content, index
    name, roles = _subject(trajectory.goal), _roles(trajectory.goal)
    if trajectory.success:
        path = _path(trajectory.goal, [_by_name(search, trajectory.goal, name) for search in searches], answer)
        return Hindsight(True, _short(answer), path, name, roles)
    mistake, again = _mistake(trajectory, searches, answer, len(roles) + 1)
    culprit, at = (again.query, again.step) if again else (answer, answered) if mistake in _BY_ANSWER else ("", None)
    return Hindsight(False, _short(answer), (), name, roles, mistake, _short(culprit), at)


# ---- words


def _workflow(known: Hindsight) -> str:
    """The searches that led to the answer, each with what to find there, if it is not the answer itself."""
    last = len(known.path) - 1
    clauses = [
        f"search {_short(search.query)}" + (f" and find {found}" if found and number < last else "")
        for number, (search, found) in enumerate(known.path)
    ]
    return _in_order([*clauses, f"answer {known.answer}"])


def _order(known: Hindsight) -> str:
    """What to do, as far as the question says it."""
    if not known.roles:
        return _in_order([f"search {known.name}", "answer from its passage"])
    clauses = [f"search {known.name} and find the {known.roles[0]}"]
    clauses += [f"search that name and find the {role}" for role in known.roles[1:]]
    return _in_order([*clauses, "search that name", "answer from its passage"])


def _in_order(clauses: Sequence[str]) -> str:
    marks = ["first", *["next"] * (len(clauses) - 2), "then"]
    return ", ".join(f"{mark} {clause}" for mark, clause in zip(marks, clauses, strict=True)) + "."


def _step_skills(known: Hindsight, trajectory: Trajectory) -> tuple[tuple[int, str], ...]:
    """A sentence for each step that decided the episode: those of the path and the answer, or the mistake's own."""
    useful = {search.step: search.query for search, _ in known.path}
    told = []
    for index, step in enumerate(trajectory.steps):
        kind, text = _read(step.action)
        if known.success and (index in useful or kind == "answer"):
            told.append((index, f"{kind} {_short(useful.get(index, text))} now."))
        elif index == known.step:
            told.append((index, f"do not {kind} {known.culprit} now."))
    return tuple(told)


def _short(text: str) -> str:
    words = text.strip().rstrip("?.!").split()
    return " ".join(words[:MOST_WORDS])


# ---- facts


def _read(action: str) -> tuple[str, str]:
    """Kind and text of an action; two empty strings where it is neither a search nor an answer."""
    match = _ACTION.fullmatch(action)
    return (match[1], match[2].strip()) if match else ("", "")


def _path(question: str, searches: Sequence[Search], answer: str) -> Path:
    """The searches that led to the answer, each with what was found there."""
    if answer.lower() in ("yes", "no"):
        return tuple((search, "") for search in searches)  # such an answer is a judgement, which no passage says
    way = _way(searches, answer, question)
    sources = _sources(searches, answer)
    return way or tuple((source, _short(answer)) for source in sources[:1])


def _way(searches: Sequence[Search], wanted: str, question: str) -> Path:
    """The searches that lead from the question to what is wanted; empty if they do not hang together."""
    for source in _sources(searches, wanted):
        found = (source, _short(wanted))
        if _asks_about(source.query, _subject(question)):
            return (found,)
        earlier = searches[: searches.index(source)]
        before = _way(earlier, _bridge(source.query, earlier, question), question)
        if before:
            return (*before, found)
    return ()


def _asks_about(query: str, name: str) -> bool:
    """Whether a query has at least half of a name's words, those without meaning aside."""
    words = set(_plain(name).split()) - _OPENERS
    return 2 * len(words & set(_plain(query).split())) >= len(words)


def _sources(searches: Sequence[Search], name: str) -> list[Search]:
    """The searches that say a name: first those that brought a passage about their own query that does, the last before."""
    latest = [search for search in reversed(searches) if _says(search.shown, name)]
    return sorted(latest, key=lambda search: not _says(_about_query(search), name))


def _about_query(search: Search) -> str:
    return "\n".join(text for title, text in _PASSAGE.findall(search.shown) if _says(search.query, title))


def _by_name(search: Search, question: str, name: str) -> Search:
    """A search for the whole question is told as one for what the question names: that is what was found by it."""
    return replace(search, query=name) if _is_whole(search.query, question) else search


def _is_whole(query: str, question: str) -> bool:
    asked = set(_plain(question).split())
    return len(asked & set(_plain(query).split())) >= WHOLE * len(asked)


def _bridge(query: str, earlier: Sequence[Search], question: str) -> str:
    """The longest run of a query's words that an earlier passage says and the question does not; empty if there is none.

    It has at least half of the words and is no part of a longer name.
    """
    words = query.split()[:MOST_WORDS]
    for length in range(len(words), max(0, (len(words) - 1) // 2), -1):
        for start in range(len(words) - length + 1):
            run = " ".join(words[start : start + length])
            around = words[max(0, start - 1) : start] + words[start + length : start + length + 1]
            if any(word[0].isupper() for word in around) or _says(question, run):
                continue
            if any(_says(search.shown, run) for search in earlier):
                return run
    return ""


def _mistake(trajectory: Trajectory, searches: Sequence[Search], answer: str, hops: int) -> tuple[Mistake, Search | None]:
    """What stood between the episode and its goal, and the search that was made again where it is that."""
    queries = [_plain(search.query) for search in searches]
    again = [search for number, search in enumerate(searches) if queries[number] in queries[:number]]
    if answer and not searches:
        return "not_searched", None
    if any(_is_whole(search.query, trajectory.goal) for search in searches):
        return "whole_question", None
    if again:
        return "repeated", again[0]
    if not answer:
        idle = sum(not _read(step.action)[0] for step in trajectory.steps)
        return ("no_action" if 2 * idle >= len(trajectory.steps) else "unanswered"), None
    if not any(_says(search.shown, answer) for search in searches):
        return "unread", None
    return ("early" if len(searches) < hops else "misread"), None


def _subject(question: str) -> str:
    """What a question names: its longest run of capitalised words, or else its words without the question's own."""
    runs = [match[0] for match in _NAMES.finditer(question) if match[0].lower() != match[0]]
    if runs and question.startswith(runs[0]) and runs[0].split()[0].lower() in _OPENERS:
        runs[0] = " ".join(runs[0].split()[1:])
    longest = max(runs, key=lambda run: len(run.split()), default="")
    plain = [word for word in question.rstrip("?").split() if word.lower() not in _OPENERS - {"of"}]
    return _short(longest or " ".join(plain) or question)


def _roles(question: str) -> tuple[str, ...]:
    """How a question describes what it does not name: ("author",) of "Where was the author of X born?"."""
    roles = _ROLE.findall(question)[::-1]
    return tuple(roles[:-1] if _ASKS_FOR_ROLE.match(question) else roles)


def _says(text: str, name: str) -> bool:
    """Whether a text has the words of a name, one after the other."""
    plain = _plain(name)
    return bool(plain) and f" {plain} " in f" {_plain(text)} "


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
