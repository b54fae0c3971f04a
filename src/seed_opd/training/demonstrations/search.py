"""Question answering to imitate: questions about encyclopaedias that are generated for practice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from seed_opd.environments.searchqa import SearchEnvironment
from seed_opd.environments.searchqa.encyclopaedia import generate_stream
from seed_opd.environments.searchqa.expert import SearchingExpert
from seed_opd.environments.searchqa.prompts import respond
from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever
from seed_opd.training.demonstrations.lesson import Lesson, Teacher
from seed_opd.trajectory import Task


class SearchTeacher(Teacher):
    """The player that reads passages; without mistakes it goes straight to the answer."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.environment: SearchEnvironment = SearchEnvironment(questions="generated")

    def lessons(self, seed: int) -> Iterator[Lesson]:
        read, retriever = "", None
        for index, (book, question) in enumerate(generate_stream(seed)):
            if book.seed != read:
                read, retriever = book.seed, Bm25Retriever(book.corpus())
            begin = partial(self.environment.start, question, retriever)
            yield Lesson(Task("search", "generated", index, seed), question.set, begin)

    def expert(self, rng: random.Random, mistakes: float) -> SearchingExpert:
        return SearchingExpert(rng, mistakes)

    def informed(self) -> SearchingExpert:
        return SearchingExpert()

    def respond(self, thought: str, command: str) -> str:
        return respond(thought, command)
