"""Search-QA as an environment: questions, a retriever, and how a language model plays it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from seed_opd.environments.base import Action, Environment, Observation, Outcome, Situation, fingerprint_of
from seed_opd.environments.options import WrongOption
from seed_opd.environments.searchqa import prompts
from seed_opd.environments.searchqa.answers import is_correct
from seed_opd.environments.searchqa.data import Data, GeneratedData, open_data
from seed_opd.environments.searchqa.encyclopaedia import SETS as GENERATED_SETS
from seed_opd.environments.searchqa.questions import SETS, Question
from seed_opd.environments.searchqa.retrievers import Retriever, check_retriever, open_retriever
from seed_opd.environments.searchqa.retrievers.base import MOST_PASSAGES
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

TURNS = 4
REWARD = 1.0
MOST_CHARACTERS = 100_000


class SearchEnvironment(Environment):
    """A question, and up to four turns of search or answer; success, reward and score are that the answer matches exactly.

    `questions` is "original", "generated", a path, or None for the originals where they are found and else the generated
    ones. `retriever` is None (BM25 over the passages that lie with the questions), the path of a passages file, the address
    of a server, or a table of options for `open_retriever`. `passages` are shown for each search, each cut to
    `passage_characters`.
    """

    name = "search"
    categories = (*SETS, *GENERATED_SETS.values())
    max_steps = TURNS

    def __init__(
        self,
        questions: str | None = None,
        retriever: str | Mapping[str, Any] | None = None,
        passages: int = 3,
        passage_characters: int = 1500,
    ) -> None:
        if retriever is not None and not isinstance(retriever, str | Mapping):
            raise WrongOption("retriever", retriever, "is no file, address or table of options; see the documentation.")
        _check("passages", passages, MOST_PASSAGES)
        _check("passage_characters", passage_characters, MOST_CHARACTERS)
        self.data = open_data(questions)
        self.example = f"{self.data.splits[0]}:0"
        self.packaged = isinstance(self.data, GeneratedData)
        self._retriever_options = _options(retriever)
        check_retriever(self._retriever_options, self.data)
        self._searched: Retriever | None = None
        self._passages = passages
        self._passage_characters = passage_characters
        self._question: Question | None = None
        self._turns = 0
        self._answer: str | None = None

    @cached_property
    def retriever(self) -> Retriever:
        """What searches: one for all environments of a process that are made alike, opened when the first episode starts."""
        return _retriever(self.data, json.dumps(self._retriever_options, sort_keys=True))

    @property
    def question(self) -> Question:
        """The question of the live episode."""
        if self._question is None:
            raise UserError("search: no episode has been started; call reset first.")
        return self._question

    @property
    def fingerprint(self) -> str:
        """A hash of the questions, and of the retriever and its passages."""
        shown = f"{self._passages} {self._passage_characters}"
        return fingerprint_of(f"{self.data.fingerprint} {self.retriever.fingerprint} {shown}")

    # ---- the world

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(self.name, split, index) for index in range(len(self.data.questions(split)))]

    def category(self, task: Task) -> str:
        return self.question_of(task).set

    def question_of(self, task: Task) -> Question:
        questions = self.data.questions(task.split)
        if task.environment != self.name or not 0 <= task.index < len(questions):
            raise UserError(f"task: {task} does not exist; {task.split!r} has {len(questions)} questions from index 0.")
        return questions[task.index]

    def reset(self, task: Task) -> Observation:
        return self.start(self.question_of(task))

    def start(self, question: Question, retriever: Retriever | None = None) -> Observation:
        """Start an episode of a question that need not be in the data, over passages of its own where they are given."""
        self._searched = retriever or self.retriever
        self._question, self._turns, self._answer = question, 0, None
        return Observation(prompts.FIRST, question.text)

    def step(self, action: str) -> Outcome:
        """A turn; anything but one search or one answer uses the turn up, and nothing happens after the end."""
        question, over = self.question, self._over
        kind, text = ("", "") if over else prompts.read_action(action)
        told = prompts.OVER if over else prompts.INVALID
        if kind == "answer":
            self._answer = text
            told = prompts.ANSWERED
        elif kind == "search":
            (hits,) = (self._searched or self.retriever).search([text], self._passages)
            told = prompts.information([hit.passage for hit in hits], self._passage_characters)
        self._turns += 1
        success = self._answer is not None and is_correct(self._answer, question.answers)
        reward = REWARD if success and kind == "answer" else 0.0
        return Outcome(told, reward, self._over, success, float(success))

    @property
    def _over(self) -> bool:
        return self._answer is not None or self._turns >= TURNS

    # ---- how a language model plays it

    def parse(self, response: str) -> Action:
        return Action(*prompts.parse(response))

    def action_span(self, response: str) -> tuple[int, int]:
        return prompts.action_span(response)

    def windowed_prompt(self, situation: Situation, skill: str | None, window: int) -> str:
        return prompts.windowed(situation, skill, window)

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        return prompts.opening(goal, observation, skill)


def _check(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise WrongOption(name, value, f"is no whole number from 1 to {most}; leave it out or mend it.")


def _options(retriever: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if retriever is None:
        return {}
    if isinstance(retriever, str):
        return {"kind": "remote", "url": retriever} if "://" in retriever else {"passages": retriever}
    return retriever


@cache
def _retriever(data: Data, options: str) -> Retriever:
    """One retriever for all environments of a process that are made alike."""
    return open_retriever(json.loads(options), data)
