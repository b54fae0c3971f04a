"""Shopping to imitate: catalogues that are generated for practice, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import count

from seed_opd.environments.base import Observation
from seed_opd.environments.shop_texts import Offer, read_offers, understand
from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.catalogue import Catalogue, open_unkept
from seed_opd.environments.webshop.expert import BUY, NEXT, SEARCH_PAGE, SearchingExpert
from seed_opd.environments.webshop.goals import Goal
from seed_opd.training.demonstrations.lesson import Lesson, Reading, Teacher
from seed_opd.trajectory import Task

PER_CATALOGUE = 300
"""Goals that are taken from a catalogue before the next one is opened."""

FIRST_CATALOGUE = 1_000_000
"""Seeds of practice catalogues begin here, so that none is one that a recipe names."""


class PracticeShop(WebshopEnvironment):
    """A shop whose catalogue is used once, so that none of its files is kept."""

    @cached_property
    def catalogue(self) -> Catalogue:
        return open_unkept(self._source)


class WebshopTeacher(Teacher):
    """The shopper that reads pages, and one that knows the product."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.environment: WebshopEnvironment = WebshopEnvironment(catalogue="generated")

    def lessons(self, seed: int) -> Iterator[Lesson]:
        for number in count():
            catalogue = f"generated:{FIRST_CATALOGUE * (seed + 1) + number}"
            shop = PracticeShop(catalogue)
            tasks = shop.tasks("all")
            for index in random.Random(catalogue).sample(range(len(tasks)), min(PER_CATALOGUE, len(tasks))):
                task = Task("webshop", catalogue, index, seed)
                yield Lesson(task, shop.category(tasks[index]), partial(self._begin, shop, tasks[index]))

    def lesson(self, task: Task) -> Lesson:
        return Lesson(task, self.environment.category(task), partial(self._begin, self.environment, task))

    def _begin(self, shop: WebshopEnvironment, task: Task) -> Observation:
        self.environment, self.goal = shop, shop.goal(task)
        return shop.reset(task)

    def readings(self, seed: int) -> Iterator[Reading]:
        """An endless stream of pages of results: which product has which number?

        Numbers are rare and cannot be foreseen where they are shown: play alone does not teach to copy one.
        """
        rng = random.Random(f"readings/{seed}")
        for lesson in self.lessons(seed):
            query = understand(lesson.begin().goal).query
            offers = read_offers(page := self.environment.step(f"search[{query}]").text)
            if offers:
                yield Reading(page, tuple(self._ask(offer, rng) for offer in rng.sample(offers, len(offers))))

    def _ask(self, offer: Offer, rng: random.Random) -> tuple[str, str]:
        number = offer.asin.upper()
        opening = self.respond(f"open {number}", f"click[{offer.asin}]")
        kinds = [(f"Open the {offer.title}.", opening), (f"Open {number}.", opening), (f"What is {number}?", offer.title)]
        return rng.choices(kinds, weights=(0.55, 0.15, 0.3))[0]

    def expert(self, rng: random.Random, mistakes: float) -> SearchingExpert:
        return SearchingExpert(rng, mistakes, self.max_steps)

    def informed(self) -> InformedShopper:
        return InformedShopper(self)

    def respond(self, thought: str, command: str) -> str:
        return f"<think>{thought}</think><action>{command}</action>"


class InformedShopper:
    """Searches, opens the product that was asked for, chooses the options, and buys."""

    def __init__(self, teacher: WebshopTeacher) -> None:
        self._teacher = teacher
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        self._query = understand(goal).query
        wanted: Goal = self._teacher.goal
        self._product = wanted.product.asin.lower()
        self._left = [value if isinstance(value, str) else value[1] for value in wanted.wanted]
        self._searched = False

    def act(self, observation: str, actions: Sequence[str]) -> str:
        command, self.thought = self._decide(actions)
        return command

    def _decide(self, actions: Sequence[str]) -> tuple[str, str]:
        if SEARCH_PAGE in actions and not self._searched:
            self._searched = True
            return f"search[{self._query}]", "search what is asked"
        if f"click[{self._product}]" in actions:
            return f"click[{self._product}]", f"open {self._product.upper()}"
        value = next((value for value in self._left if f"click[{value}]" in actions), None)
        if BUY in actions and value is not None:
            self._left.remove(value)
            return f"click[{value}]", f"choose {value}"
        if BUY in actions:
            return BUY, "all is chosen"
        return NEXT, "look at more"
