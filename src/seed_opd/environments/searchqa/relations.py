"""What a generated encyclopaedia says: kinds of entries, relations between them, and the wording of both.

`{s}` is the entry that a sentence is about, `{o}` what it says of it; `{x}` is the entry, or its description, in a question.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """One fact that every entry of a kind has.

    `object` is a kind of entry, or a kind of plain value ("year", "river" ...). `role` is how an entry is described by it
    ("the author of X"), and is empty for values and where no chain should go on from it.
    """

    name: str
    subject: str
    object: str
    sentence: str
    questions: tuple[str, ...]
    role: str = ""


RELATIONS = (
    Relation("craft", "person", "craft", "{s} was a {o}.", ("By which craft did {x} live?", "Which craft did {x} have?")),
    Relation(
        *("birthplace", "person", "town", "{s} was born in {o}."),
        ("In which town was {x} born?", "Where was {x} born?"),
        role="birthplace",
    ),
    Relation(
        "birth", "person", "year", "{s} was born in the year {o}.", ("In which year was {x} born?", "When was {x} born?")
    ),
    Relation(
        *("teacher", "person", "person", "{s} was taught by {o}."),
        ("Who taught {x}?", "Who was it that taught {x}?"),
        role="teacher",
    ),
    Relation(
        *("country", "town", "country", "{s} is a town in {o}."),
        ("In which country does {x} lie?", "Which country does {x} belong to?"),
        role="country",
    ),
    Relation(
        *("river", "town", "river", "{s} lies on the river {o}."),
        ("Which river flows through {x}?", "On which river does {x} lie?"),
    ),
    Relation(
        *("mayor", "town", "person", "{s} has the mayor {o}."),
        ("Who is the mayor in {x}?", "Which mayor does {x} have?"),
        role="mayor",
    ),
    Relation(
        *("capital", "country", "town", "{s} has its capital in {o}."),
        ("Where does {x} have its capital?", "Which town does {x} have as its capital?"),
        role="capital",
    ),
    Relation(
        *("ruler", "country", "person", "{s} is ruled by {o}."),
        ("Who rules {x}?", "By whom is {x} ruled?"),
        role="ruler",
    ),
    Relation(
        *("coin", "country", "coin", "{s} pays with the {o}."),
        ("With which coin does {x} pay?", "Which coin does {x} use?"),
    ),
    Relation(
        *("author", "novel", "person", "{s} is a novel written by {o}."),
        ("Who wrote {x}?", "By whom was {x} written?"),
        role="author",
    ),
    Relation(
        *("setting", "novel", "town", "{s} is set in {o}."),
        ("Where is {x} set?", "In which town is {x} set?"),
        role="setting",
    ),
    Relation(
        *("publication", "novel", "year", "{s} was published in the year {o}."),
        ("In which year was {x} published?", "When was {x} published?"),
    ),
    Relation(
        *("founder", "company", "person", "{s} was founded by {o}."),
        ("Who founded {x}?", "By whom was {x} founded?"),
        role="founder",
    ),
    Relation(
        *("seat", "company", "town", "{s} has its seat in {o}."),
        ("Where does {x} have its seat?", "In which town does {x} have its seat?"),
        role="seat",
    ),
    Relation("product", "company", "product", "{s} makes {o}.", ("What does {x} make?", "Which goods does {x} make?")),
    Relation(
        *("architect", "monument", "person", "{s} was designed by {o}."),
        ("Who designed {x}?", "By whom was {x} designed?"),
        role="architect",
    ),
    Relation(
        *("site", "monument", "town", "{s} stands in {o}."),
        ("Where does {x} stand?", "In which town does {x} stand?"),
        role="site",
    ),
)

UNSEEN_KIND = "monument"
"""No question about this kind of entry is posed in training."""

UNSEEN_CHAINS = frozenset(
    {("author", "teacher"), ("founder", "birthplace"), ("teacher", "craft"), ("birthplace", "river"), ("mayor", "birth")}
    | {("setting", "country"), ("ruler", "birthplace"), ("seat", "mayor")}
)
"""Pairs of relations, each known alone in training, that no training question puts together."""

Chain = tuple[Relation, ...]
"""The relations that lead from the entry that a question names to its answer, first the nearest to the entry."""


def one_hop() -> list[Chain]:
    return [(relation,) for relation in RELATIONS]


def two_hop() -> list[Chain]:
    """Pairs that lead somewhere; a country's capital is not asked for its country."""
    pairs = [(first, second) for first in RELATIONS for second in RELATIONS if first.role and first.object == second.subject]
    return [pair for pair in pairs if (pair[0].name, pair[1].name) != ("capital", "country")]


def is_unseen(chain: Chain) -> bool:
    """Whether a chain is kept for the panel of what training never poses."""
    return chain[0].subject == UNSEEN_KIND or tuple(relation.name for relation in chain) in UNSEEN_CHAINS


def describe(chain: Chain, name: str) -> str:
    """An entry by its relations to a named one: "the author of The Silent Harbour"."""
    for relation in chain:
        name = f"the {relation.role} of {name}"
    return name


def ask(chain: Chain, name: str, wording: int) -> str:
    """The question that a chain poses about a named entry, in one of its wordings."""
    questions = chain[-1].questions
    return questions[wording % len(questions)].format(x=describe(chain[:-1], name))
