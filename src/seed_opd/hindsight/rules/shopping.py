"""What hindsight knows about a shopping (WebShop) episode, read from its text alone.

The goal names attributes, options and a highest price. The pages say what was offered; the last one, what was bought with
which options, and the score. What the goal's own product is, is never looked at.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from seed_opd.environments.shop_texts import RESULTS, SEPARATOR, Wish, lowest, read_offers, understand
from seed_opd.errors import UserError
from seed_opd.trajectory import Trajectory

Mistake = Literal[
    "repeated", "nothing_seen", "not_bought", "wrong_option", "too_early", "too_dear", "no_such_option", "wrong_product"
]

REPEATS = 3
"""A search that was made so often is a mistake of its own."""

_ACTION = re.compile(r"(search|click)\[(.+)\]")
_ITEM = re.compile(r"< Prev \[SEP\] (.*) \[SEP\] (Price: .*?) \[SEP\] Rating")
_DETAILS = re.compile(r"Back to Search \[SEP\] < Prev(?: \[SEP\] (.*))?$", re.DOTALL)
_RECEIPT = re.compile(
    r"Purchased \[SEP\] asin \[SEP\] (\S+) \[SEP\] options \[SEP\] (\{.*?\}) \[SEP\] attrs .*\) \[SEP\] ([\d.e-]+)"
)


@dataclass(slots=True)
class Product:
    """A product as the episode showed it: the search and the page of results that it was on, its lowest price, its texts.

    `values` are what can be chosen on its page; None where it was not opened.
    """

    asin: str
    query: str
    page: int
    price: float
    text: str
    values: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Purchase:
    """What was bought, with which options, and the score from 0 to 1."""

    asin: str
    options: Mapping[str, str]
    score: float


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The facts of one episode.

    `product` is what was bought or, after a failure, what should be; None where nothing that could be was seen. `values` are
    what to choose, `mistake` is None after a success, and `culprit` is the product, value or search that it is about.
    """

    goal: Wish
    success: bool
    product: Product | None
    values: tuple[str, ...]
    mistake: Mistake | None = None
    culprit: str = ""
    missing: str = ""  # the value or attribute that the culprit lacks


def parse_goal(text: str) -> Wish:
    """Read a goal; raises UserError for an empty one."""
    plain = text.lower().strip().removeprefix("your task is to:").strip()
    if not plain:
        raise UserError("goal: it is empty; use these rules for WebShop only.")
    return understand(plain)


def facts(trajectory: Trajectory) -> Hindsight:
    """Read the facts of a finished episode."""
    episode = _Episode(parse_goal(trajectory.goal))
    pages = [*(step.observation for step in trajectory.steps[1:]), trajectory.final_observation]
    for step, page in zip(trajectory.steps, pages, strict=True):
        episode.turn(step.action, page)
    if trajectory.success:
        return _succeeded(episode)
    return _failed(episode)


@dataclass(slots=True)
class _Episode:
    """Everything that an episode's text has shown so far."""

    goal: Wish
    query: str = ""
    searches: Counter[str] = field(default_factory=Counter)
    products: dict[str, Product] = field(default_factory=dict)
    asin: str = ""  # of the product whose pages one is on
    purchase: Purchase | None = None

    def turn(self, action: str, page: str) -> None:
        """One action and the page that it led to."""
        match = _ACTION.match(action.lower())
        verb, name = match.groups() if match else ("", "")
        if verb == "search":
            self.query = name
            self.searches[name] += 1
        if receipt := _RECEIPT.search(page):
            self.purchase = self.purchase or Purchase(receipt[1].lower(), _options(receipt[2]), float(receipt[3]))
        elif results := RESULTS.search(page):
            self.asin = ""
            self._offers(page, int(results[1]))
        elif item := _ITEM.search(page):
            self.asin = name if name in self.products else self.asin
            self._opened(item[1].split(SEPARATOR), item[2])
        elif (details := _DETAILS.search(page)) and self.asin in self.products:
            self.products[self.asin].text += f" {details[1] or ''}".lower()

    def _offers(self, page: str, number: int) -> None:
        for offer in read_offers(page):
            known = Product(offer.asin, self.query, number, offer.price, offer.title.lower())
            self.products.setdefault(known.asin, known)

    def _opened(self, texts: Sequence[str], price: str) -> None:
        product = self.products.get(self.asin)
        if product is not None:
            product.values, product.price = frozenset(texts[:-1]), lowest(price)

    # ---- judging

    def lacks(self, product: Product) -> list[str]:
        """Values that the goal asks for and an opened product does not offer."""
        return [] if product.values is None else [v for v in self.goal.options.values() if v not in product.values]

    def untold(self, product: Product) -> list[str]:
        """Attributes that the goal asks for and nothing seen of the product tells."""
        return [attribute for attribute in self.goal.attributes if attribute not in product.text]

    def best(self, without: str = "") -> Product | None:
        """The most promising product that was seen; None where none could be it."""
        fitting = [
            product
            for product in self.products.values()
            if product.asin != without and product.price <= self.goal.limit and not self.lacks(product)
        ]
        return max(fitting, key=lambda p: (-len(self.untold(p)), p.values is not None), default=None)


def _succeeded(episode: _Episode) -> Hindsight:
    bought = episode.purchase
    product = episode.products.get(bought.asin) if bought else None
    return Hindsight(episode.goal, True, product, tuple(bought.options.values()) if bought else ())


def _failed(episode: _Episode) -> Hindsight:
    goal, bought = episode.goal, episode.purchase
    values = tuple(goal.options.values())
    product = episode.products.get(bought.asin) if bought else None
    if bought is None or product is None:
        mistake, culprit = _not_bought(episode)
        return Hindsight(goal, False, episode.best(), values, mistake, culprit)
    wrong = [value for name, value in bought.options.items() if goal.options.get(name, value) != value]
    forgotten = [value for name, value in goal.options.items() if name not in bought.options]
    lacking, untold = episode.lacks(product), episode.untold(product)
    if product.price > goal.limit:
        return Hindsight(goal, False, episode.best(product.asin), values, "too_dear", product.asin)
    if lacking:
        return Hindsight(goal, False, episode.best(product.asin), values, "no_such_option", product.asin, lacking[0])
    if not (wrong or forgotten) or not _only_options_missed(goal, bought):
        return Hindsight(goal, False, episode.best(product.asin), values, "wrong_product", product.asin, "".join(untold[:1]))
    if wrong:
        return Hindsight(goal, False, product, values, "wrong_option", wrong[0])
    return Hindsight(goal, False, product, values, "too_early", product.asin, forgotten[0])


def _not_bought(episode: _Episode) -> tuple[Mistake, str]:
    search, times = max(episode.searches.items(), key=lambda item: item[1], default=("", 0))
    if times >= REPEATS:
        return "repeated", search
    best = episode.best()
    return ("not_bought", best.asin) if best else ("nothing_seen", "")


def _only_options_missed(goal: Wish, bought: Purchase) -> bool:
    """Whether the score is what the right product gets with these options: attributes, options and price count alike."""
    right = sum(bought.options.get(name) == value for name, value in goal.options.items())
    rest = len(goal.attributes) + 1
    return abs(bought.score - (rest + right) / (rest + len(goal.options))) < 1e-6


def _options(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in found.items()}
