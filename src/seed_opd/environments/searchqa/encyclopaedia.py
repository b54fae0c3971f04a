"""Small invented encyclopaedias, and questions of one and two hops that they answer.

Everything follows from a seed. In the packaged one, the questions of `train` and `valid_seen` are about different entries;
those of `valid_unseen` are about a kind of entry, or put relations together, that training never poses. The stream is
endless and poses only what training poses.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from seed_opd.environments.searchqa.passages import Corpus, Passage
from seed_opd.environments.searchqa.questions import Question
from seed_opd.environments.searchqa.relations import RELATIONS, Chain, Relation, ask, is_unseen, one_hop, two_hop

SIZES = {"person": 90, "town": 40, "country": 8, "novel": 60, "company": 40, "monument": 40}
"""Entries of each kind."""

YEARS = range(1500, 1900)
SETS = {1: "one_hop", 2: "two_hop"}
"""The set that a question is reported in, by the hops that it takes."""

PACKAGED_SEED = 2026
PACKAGED = {"train": 360, "valid_seen": 60, "valid_unseen": 60}
"""Questions of each number of hops in the packaged encyclopaedia's splits."""

QUESTIONS_PER_SEED = 48
"""How many questions of the stream share an encyclopaedia."""


@dataclass(frozen=True)
class Encyclopaedia:
    """Entries by kind, and what is true of them: `facts[relation, name]`."""

    seed: str
    entries: dict[str, list[str]]
    facts: dict[tuple[str, str], str]

    def corpus(self) -> Corpus:
        """One passage for each entry, in an order that says nothing."""
        about = [(kind, name) for kind, names in self.entries.items() for name in names]
        random.Random(f"{self.seed}/order").shuffle(about)
        passages = [Passage(str(number), name, self._text(kind, name)) for number, (kind, name) in enumerate(about)]
        return Corpus(f"the generated encyclopaedia {self.seed}", passages)

    def answer(self, chain: Chain, name: str) -> str:
        for relation in chain:
            name = self.facts[relation.name, name]
        return name

    def question(self, chain: Chain, name: str, wording: int) -> Question:
        return Question(ask(chain, name, wording), (self.answer(chain, name),), SETS[len(chain)])

    def _text(self, kind: str, name: str) -> str:
        told = [relation for relation in RELATIONS if relation.subject == kind]
        return " ".join(relation.sentence.format(s=name, o=self.facts[relation.name, name]) for relation in told)


def generate(seed: str) -> Encyclopaedia:
    """An encyclopaedia from a seed."""
    rng, words = random.Random(f"encyclopaedia/{seed}"), _words()
    entries = {kind: _names(kind, count, rng) for kind, count in SIZES.items()}
    facts = {}
    for relation in RELATIONS:
        for name in entries[relation.subject]:
            facts[relation.name, name] = _object(relation, name, entries, words, rng)
    return Encyclopaedia(seed, entries, facts)


def packaged_questions(split: str) -> tuple[Question, ...]:
    """The questions of a split of the packaged encyclopaedia, both numbers of hops in turn."""
    book = packaged()
    rng = random.Random(f"questions/{book.seed}/{split}")
    drawn = []
    for chains in (one_hop(), two_hop()):
        posed = [
            (chain, name) for chain in chains for name in book.entries[chain[0].subject] if _split(chain, name) == split
        ]
        drawn.append(rng.sample(posed, PACKAGED[split]))
    pairs = [pair for both in zip(*drawn, strict=True) for pair in both]
    return tuple(book.question(chain, name, rng.randrange(2)) for chain, name in pairs)


@cache
def packaged() -> Encyclopaedia:
    return generate(str(PACKAGED_SEED))


def generate_stream(seed: int) -> Iterator[tuple[Encyclopaedia, Question]]:
    """Endless questions of the kinds that training poses, half of two hops, over one encyclopaedia after the other."""
    number = 0
    while True:
        book = generate(f"stream-{seed}-{number}")
        rng = random.Random(f"questions/{book.seed}")
        for index in range(QUESTIONS_PER_SEED):
            chain = rng.choice([chain for chain in (two_hop() if index % 2 else one_hop()) if not is_unseen(chain)])
            yield book, book.question(chain, rng.choice(book.entries[chain[0].subject]), rng.randrange(2))
        number += 1


def _split(chain: Chain, name: str) -> str:
    """The one split in which a question is posed; entries kept for `valid_seen` never occur in training's questions."""
    if is_unseen(chain):
        return "valid_unseen"
    return "valid_seen" if zlib.crc32(name.encode()) % 5 == 0 else "train"


def _object(relation: Relation, name: str, entries: dict[str, list[str]], words: dict, rng: random.Random) -> str:
    if relation.object == "year":
        return str(rng.choice(YEARS))
    choices = entries.get(relation.object) or words[relation.object]
    return rng.choice([choice for choice in choices if choice != name])


def _names(kind: str, count: int, rng: random.Random) -> list[str]:
    """Different names of a kind, made of the words for it."""
    words = _words()
    parts = {
        "person": ("{0} {1}", "first", "last"),
        "town": ("{0}{1}", "town_start", "town_end"),
        "novel": ("The {0} {1}", "adjective", "noun"),
        "company": ("{0} {1}", "last", "firm"),
        "monument": ("{0} {1}", "last", "monument"),
    }
    if kind not in parts:
        return rng.sample(words[kind], count)
    form, first, second = parts[kind]
    names = [form.format(one, two) for one in words[first] for two in words[second] if one != two]
    return rng.sample(names, count)


@cache
def _words() -> dict[str, list[str]]:
    return yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
