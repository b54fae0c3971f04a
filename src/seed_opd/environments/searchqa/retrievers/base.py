"""What a retriever is: queries in, the best passages out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seed_opd.environments.searchqa.passages import Passage
from seed_opd.errors import RunStopped

MOST_PASSAGES = 100
"""The most passages per query that can be asked for."""


class RetrieverFailed(RunStopped):
    """A retriever gave no usable answer; the message says what was asked, what came back, and what to do."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage and its score; higher is better, and scores of different retrievers cannot be compared."""

    passage: Passage
    score: float


class Retriever(Protocol):
    """Finds passages. It is shared by many environments and threads."""

    @property
    def name(self) -> str:
        """What it is and over what, for people."""

    @property
    def size(self) -> int | None:
        """How many passages it searches; None where a server does not say. It is never 0."""

    @property
    def fingerprint(self) -> str:
        """A hash of the passages and of all else that decides what is found."""

    def search(self, queries: Sequence[str], top: int) -> list[list[Hit]]:
        """The best `top` passages for each query, best first; fewer, or none, where no more match at all.

        Raises RetrieverFailed where no answer can be had; nothing that failed looks like nothing found.
        """
