"""WebShop as an environment: tasks from the canonical goal list, visits to the shop, and how a language model plays it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import get_args

from seed_opd.environments.base import Action, Environment, Observation, Outcome, Situation, fingerprint_of
from seed_opd.environments.options import WrongOption
from seed_opd.environments.webshop import prompts
from seed_opd.environments.webshop.catalogue import Catalogue, open_source
from seed_opd.environments.webshop.goals import Goal, Goals, Kind
from seed_opd.environments.webshop.nouns import missing_nouns, nouns_for
from seed_opd.environments.webshop.pages import Page
from seed_opd.environments.webshop.reward import Nouns
from seed_opd.environments.webshop.shop import Visit
from seed_opd.environments.webshop.sources import Generated, find
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

REWARD = 10.0
TEST_GOALS = 500
SPLITS = ("all", "train", "test")
KINDS: tuple[Kind, ...] = get_args(Kind)
SEARCH_ACTION = "search[<your query>]"


class WebshopEnvironment(Environment):
    """Shopping in text; buying ends the episode, and success is that the purchase is all that was asked for.

    `catalogue` says what is sold: "original", "generated" ("generated:<seed>" for others to practise on), the path of a
    folder or of a product file, or None for the originals where they are found and else the generated one. `goals` are
    "synthetic" or "human"; those about products that the catalogue lacks are an error unless `drop_goals_without_product`.
    `spacy_model` finds the nouns of titles where they are not recorded.
    The reward is 10 at a purchase with the full score; the score is the original's reward, from 0 to 1.
    """

    name = "webshop"
    max_steps = 15
    example = "all:0"
    categories = ("fashion", "beauty", "electronics", "garden", "grocery")

    def __init__(
        self,
        catalogue: str | None = None,
        goals: Kind = "synthetic",
        spacy_model: str | None = None,
        drop_goals_without_product: bool = False,
    ) -> None:
        if goals not in KINDS:
            raise WrongOption("goals", goals, f"is unknown; choose one of {', '.join(KINDS)}.")
        self._source = find(catalogue)
        self._kind = goals
        self._spacy_model = spacy_model
        self._drop = drop_goals_without_product
        self._source.check()
        if self._source.without_nouns and spacy_model is None:
            raise missing_nouns(f"{self._source.name} has no recorded title nouns")
        self.packaged = isinstance(self._source, Generated)
        self._visit: Visit | None = None

    @cached_property
    def catalogue(self) -> Catalogue:
        """The products, opened when they are first asked for."""
        catalogue = open_source(self._source)
        _check_orphans(catalogue, self._drop)
        return catalogue

    @cached_property
    def goals(self) -> Goals:
        return _goals(self.catalogue, self._kind)

    @cached_property
    def _nouns(self) -> Nouns:
        return nouns_for(self.catalogue, self._spacy_model)

    @property
    def visit(self) -> Visit:
        """The live episode."""
        if self._visit is None:
            raise UserError("webshop: no episode has been started; call reset first.")
        return self._visit

    @property
    def fingerprint(self) -> str:
        """A hash of the products and the kind of goals, to be recorded with results."""
        return fingerprint_of(f"{self.catalogue.fingerprint} {self.goals.kind}")

    # ---- the world

    def tasks(self, split: str) -> Sequence[Task]:
        """`all` has every goal of the canonical list, `test` its first 500, `train` the others."""
        first, end = self._range(split)
        return [Task(self.name, split, index) for index in range(end - first)]

    def category(self, task: Task) -> str:
        return self.goal(task).product.category

    def goal(self, task: Task) -> Goal:
        """What a task asks for."""
        first, end = self._range(task.split)
        if task.environment != self.name or not 0 <= task.index < end - first:
            raise UserError(f"task: {task} does not exist; {task.split!r} has {end - first} goals from index 0.")
        return self.goals[first + task.index]

    def _range(self, split: str) -> tuple[int, int]:
        if split not in SPLITS:
            raise UserError(f"split: {split!r} is not in WebShop; choose one of {', '.join(SPLITS)}.")
        test = min(TEST_GOALS, len(self.goals))
        return {"all": (0, len(self.goals)), "test": (0, test), "train": (test, len(self.goals))}[split]

    def reset(self, task: Task) -> Observation:
        goal = self.goal(task)
        self._visit = Visit(self.catalogue, goal, lambda position: float(self.goals.product_prices[position]), self._nouns)
        return Observation(self._visit.page.text, goal.text, _actions(self._visit.page))

    def step(self, action: str) -> Outcome:
        over = self.visit.reward is not None
        page = self.visit.act(action)
        score = self.visit.reward
        success = score == 1.0
        reward = REWARD if success and not over else 0.0
        return Outcome(page.text, reward, score is not None, success, score or 0.0, _actions(page))

    # ---- how a language model plays it

    def parse(self, response: str) -> Action:
        return Action(*prompts.parse(response))

    def action_span(self, response: str) -> tuple[int, int]:
        return prompts.action_span(response)

    def windowed_prompt(self, situation: Situation, skill: str | None, window: int) -> str:
        return prompts.windowed(situation, skill, window)

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        return prompts.opening(goal, observation, skill)

    def reply(self, observation: str) -> str:
        return prompts.without_task(observation)


def _actions(page: Page) -> tuple[str, ...]:
    """A search where there is a search bar, else the clicks."""
    return (SEARCH_ACTION,) if page.search_bar else tuple([f"click[{name}]" for name in page.clickables])


def _check_orphans(catalogue: Catalogue, drop: bool) -> None:
    if catalogue.orphans and not drop:
        raise UserError(
            f"webshop: {len(catalogue.orphans)} goals are about products that {catalogue.name} does not have, the first "
            f"{catalogue.orphans[0]}; give files that belong together, or set drop_goals_without_product."
        )


@lru_cache(maxsize=8)
def _goals(catalogue: Catalogue, kind: Kind) -> Goals:
    """The goals of a catalogue; environments share them."""
    return Goals(catalogue, kind)
