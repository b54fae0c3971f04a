"""A scripted player of generated questions that reads nothing but the question and the passages that it is shown."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from seed_opd.environments.searchqa.prompts import FIRST, write_action
from seed_opd.environments.searchqa.relations import RELATIONS, Chain, Relation
from seed_opd.errors import UserError

UNKNOWN = "unknown"
"""What is answered when nothing was found."""

LAST_TURN = 4
_TITLE = re.compile(r"^\[\d+\] (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wish:
    """A question, understood: the entry that it names, and the relations that lead from there to the answer."""

    name: str
    chain: Chain


def understand(question: str) -> Wish:
    """Read a question; raises UserError for a text that is none of the wordings of the generated ones."""
    for last in RELATIONS:
        for pattern in _patterns(last):
            if match := pattern.fullmatch(question.strip()):
                name, roles = _unfold(match["x"])
                if chain := _chain(roles, last):
                    return Wish(name, chain)
    raise UserError(f"question {question!r} is not one of the generated ones; the scripted expert plays only these.")


class SearchingExpert:
    """Searches the entry that a question names, reads on from passage to passage, and answers. The same episode always gives
    the same play, unless `rng` is given.

    `mistakes` is the probability, per turn, of one of the usual mistakes instead: answering too early or with another fact,
    searching the whole question, the same again, or another entry that was shown; it needs `rng`. `thought` says in a few
    words what the last action was for.
    """

    def __init__(self, rng: random.Random | None = None, mistakes: float = 0.0) -> None:
        if mistakes and rng is None:
            raise UserError(f"mistakes {mistakes} needs random draws; give the expert a seeded rng.")
        self._rng = rng
        self._mistakes = mistakes
        self.thought = ""

    def reset(self, goal: str, observation: str = FIRST) -> None:
        """Begin an episode; raises UserError where the question is not understood."""
        self.wish = understand(goal)
        self._question = goal
        self._known = [self.wish.name]  # the named entry, and what was found after it
        self._read: list[str] = []
        self._queries: list[str] = []
        self._turn = 0

    def act(self, observation: str, admissible: Sequence[str] = ()) -> str:
        """The next action, given what the last one led to."""
        self._turn += 1
        self._read += _sentences(observation)
        self._titles = [title for title in _TITLE.findall(observation) if title not in self._known]
        while self._missing and (found := _look_up(self._read, self._missing, self._known[-1])):
            self._known.append(found)
        if self._rng is not None and self._rng.random() < self._mistakes:
            return self._mistake(self._rng)
        return self._decide()

    @property
    def _missing(self) -> Relation | None:
        """The relation to find out next; None when the answer is known."""
        done = len(self._known) - 1
        return self.wish.chain[done] if done < len(self.wish.chain) else None

    def _decide(self) -> str:
        if self._missing is None:
            return self._answer(self._known[-1], f"the {self.wish.chain[-1].name} is {self._known[-1]}")
        if self._turn == LAST_TURN:
            return self._answer(UNKNOWN, "no more turns")
        name, what = self._known[-1], self._missing.name
        return self._search(f"{name} {what}" if name in self._queries else name, f"find the {what}")

    def _mistake(self, rng: random.Random) -> str:
        kinds = ["whole question", "whole question", "early"]
        if self._queries:
            kinds += ["again", "early", "elsewhere"]
        kind = rng.choice(kinds)
        if kind == "again":
            return self._search(self._queries[-1], "look once more")
        if kind == "elsewhere" and self._titles:
            return self._search(rng.choice(self._titles), "look at another")
        if kind == "early":
            guess = rng.choice(self._other_facts() or [self._known[0]])
            return self._answer(guess, f"it is {guess}")
        return self._search(self._question, "search the question")

    def _other_facts(self) -> list[str]:
        """What the passages say of the entries on the way, without the answer."""
        found = [_look_up(self._read, relation, name) for name in self._known for relation in RELATIONS]
        return [fact for fact in found if fact and (self._missing or fact != self._known[-1])]

    def _search(self, query: str, thought: str) -> str:
        self.thought = thought
        self._queries.append(query)
        return write_action("search", query)

    def _answer(self, text: str, thought: str) -> str:
        self.thought = thought
        return write_action("answer", text)


def _sentences(observation: str) -> list[str]:
    return [sentence for line in observation.splitlines() for sentence in re.findall(r"[^.]+\.", line.strip())]


def _look_up(sentences: Sequence[str], relation: Relation, name: str) -> str | None:
    """What the passages say of a name, if they say it."""
    before, after = relation.sentence.split("{o}")
    start = before.format(s=name)
    for sentence in map(str.strip, sentences):
        if sentence.startswith(start) and sentence.endswith(after):
            return sentence[len(start) : len(sentence) - len(after)]
    return None


@cache
def _patterns(relation: Relation) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(re.escape(text).replace(r"\{x\}", "(?P<x>.+)")) for text in relation.questions)


def _unfold(text: str) -> tuple[str, tuple[str, ...]]:
    """The entry in a description, and the roles from there outwards: "the author of X" gives X and ("author",)."""
    if match := re.fullmatch(r"the (\w+) of (.+)", text):
        name, roles = _unfold(match[2])
        return name, (*roles, match[1])
    return text, ()


def _chain(roles: Sequence[str], last: Relation) -> Chain:
    """The relations with these roles that end in `last`; empty where there are none."""
    chain = [last]
    for role in reversed(roles):
        fitting = [relation for relation in RELATIONS if relation.role == role and relation.object == chain[0].subject]
        if not fitting:
            return ()
        chain.insert(0, fitting[0])
    return tuple(chain)
