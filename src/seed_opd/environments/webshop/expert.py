"""A scripted shopper that reads nothing but the task and the pages that it is shown."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from seed_opd.environments.shop_texts import RESULTS, SEPARATOR, Offer, lowest, read_offers, understand
from seed_opd.errors import UserError

STEPS = 15
"""The usual length of an episode."""

BUY, BACK, NEXT, FEATURES = "click[buy now]", "click[< prev]", "click[next >]", "click[features]"
SEARCH_PAGE = "search[<your query>]"
DETAIL_BUTTONS = ("Description", "Features", "Reviews", "Buy Now")


@dataclass(slots=True)
class Look:
    """What is known of a product that was looked at; `values` are what can be chosen, `text` its title and features."""

    values: frozenset[str]
    text: str
    price: float
    read: bool = False  # whether its features were read
    chosen: list[str] = field(default_factory=list)


class SearchingExpert:
    """Searches what the task says, looks at the offers one after the other, and buys the first that has everything, or, when
    steps run out, the best that it saw. The same episode always gives the same play, unless `rng` is given.

    It plans for episodes that are cut at `steps`. `mistakes` is the probability, per step, of one of the usual mistakes
    instead: a vague search, opening another product, choosing another value, buying too early, going back, reading reviews;
    it needs `rng`. `thought` says in a few words what the last action was for.
    """

    def __init__(self, rng: random.Random | None = None, mistakes: float = 0.0, steps: int = STEPS) -> None:
        if mistakes and rng is None:
            raise UserError(f"mistakes {mistakes} needs random draws; give the expert a seeded rng.")
        self._rng = rng
        self._mistakes = mistakes
        self._most_steps = steps
        self.thought = ""

    def reset(self, goal: str, observation: str) -> None:
        """Begin an episode."""
        self.wish = understand(goal)
        self._looks: dict[str, Look] = {}
        self._offers: list[Offer] = []
        self._asin = ""  # of the product whose pages one is on
        self._decided = ""  # what will be bought
        self._pages = 1
        self._steps = 0

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """The next action, given what the last one led to and what can be done now."""
        self._steps += 1
        self._perceive(observation, admissible)
        action, self.thought = self._decide(admissible)
        if self._rng is not None and self._rng.random() < self._mistakes:
            action, self.thought = self._mistake(self._rng, admissible)
        self._note(action)
        return action

    # ---- perceiving

    def _perceive(self, page: str, admissible: Sequence[str]) -> None:
        if RESULTS.search(page):
            self._offers, self._asin = read_offers(page), ""
        elif BUY in admissible:
            self._looks.setdefault(self._asin, self._look(page, admissible))
        elif self._asin in self._looks:
            self._looks[self._asin].text += page.partition("< Prev")[2].lower()

    def _look(self, page: str, admissible: Sequence[str]) -> Look:
        values = [action[len("click[") : -1] for action in admissible[admissible.index(BUY) + 1 :]]
        *_, title, price, _rating = page.partition("< Prev")[2].partition(SEPARATOR + "Description")[0].split(SEPARATOR)
        return Look(frozenset(values), title.lower(), lowest(price))

    def _note(self, action: str) -> None:
        """Keep what an action changes that no page shows."""
        name = action[len("click[") : -1]
        if any(name == offer.asin for offer in self._offers) and not self._asin:
            self._asin = name
            if name in self._looks:
                self._looks[name].chosen = []
        elif self._asin in self._looks and name in self._looks[self._asin].values:
            self._looks[self._asin].chosen.append(name)
        elif action == FEATURES and self._asin in self._looks:
            self._looks[self._asin].read = True

    # ---- deciding

    def _decide(self, admissible: Sequence[str]) -> tuple[str, str]:
        if SEARCH_PAGE in admissible:
            return f"search[{self.wish.query}]", "search the task"
        if BUY in admissible:
            return self._judge()
        if self._asin:
            return BACK, "back to product"
        return self._choose_offer(admissible)

    def _choose_offer(self, admissible: Sequence[str]) -> tuple[str, str]:
        if self._decided:
            return self._open(self._decided, admissible)
        for offer in self._offers:
            if offer.asin not in self._looks and offer.price <= self.wish.limit and self._time_for_another:
                return self._open(offer.asin, admissible)
        if self._time_for_another and self._pages < 2 and NEXT in admissible and self._offers:
            self._pages += 1
            return NEXT, "see more products"
        self._decided = max(self._looks, key=self._merit, default=self._offers[0].asin if self._offers else "")
        return self._open(self._decided, admissible)

    def _open(self, asin: str, admissible: Sequence[str]) -> tuple[str, str]:
        if (action := f"click[{asin}]") in admissible:
            return action, f"open {asin.upper()}"
        if BACK in admissible:
            return BACK, "back to results"
        return (f"search[{self.wish.words}]", "search other words")

    def _judge(self) -> tuple[str, str]:
        """On a product's page: choose and buy where it is the one, else read on or go back."""
        look = self._looks[self._asin]
        if self._decided != self._asin:
            if self._fits(look) or (self._all_values(look) and look.price <= self.wish.limit and not self._time_to_read):
                self._decided = self._asin
            elif self._all_values(look) and look.price <= self.wish.limit and not look.read:
                return FEATURES, "read its features"
            elif self._time_for_another or self._merit(self._asin) < max(map(self._merit, self._looks)):
                return BACK, "back to results"
            else:
                self._decided = self._asin
        for value in self.wish.options.values():
            if value in look.values and value not in look.chosen:
                return f"click[{value}]", f"choose {value}"
        return BUY, "buy it now"

    def _fits(self, look: Look) -> bool:
        return self._all_values(look) and look.price <= self.wish.limit and self._told(look) == len(self.wish.attributes)

    def _all_values(self, look: Look) -> bool:
        return set(self.wish.options.values()) <= look.values

    def _told(self, look: Look) -> int:
        """How many of the attributes the product's texts tell."""
        return sum(attribute in look.text for attribute in self.wish.attributes)

    def _merit(self, asin: str) -> tuple[bool, int, int]:
        look = self._looks[asin]
        values = len(set(self.wish.options.values()) & look.values)
        return look.price <= self.wish.limit, values, self._told(look)

    @property
    def _left(self) -> int:
        """Steps left after choosing all options and buying."""
        return self._most_steps - self._steps + 1 - len(self.wish.options) - 1

    @property
    def _time_for_another(self) -> bool:
        return self._left >= 4  # back, open, and to return to what was seen before

    @property
    def _time_to_read(self) -> bool:
        return self._left >= 2

    # ---- mistakes

    def _mistake(self, rng: random.Random, admissible: Sequence[str]) -> tuple[str, str]:
        if SEARCH_PAGE in admissible:
            words = self.wish.query.split()
            start = rng.randrange(len(words)) if words else 0
            return f"search[{' '.join(words[start : start + 2]) or 'products'}]", "search it"
        if BUY in admissible:
            values = sorted(self._looks[self._asin].values - set(self.wish.options.values()))
            wrong = [(f"click[{value}]", f"choose {value}") for value in values]
            return rng.choice(
                [(BUY, "buy it now"), *([rng.choice(wrong)] if wrong else []), ("click[reviews]", "read its reviews")]
            )
        links = [offer.asin for offer in self._offers if f"click[{offer.asin}]" in admissible]
        choices = [(f"click[{asin}]", f"open {asin.upper()}") for asin in links[1:4]]
        return rng.choice([*choices, ("click[back to search]", "search again")])
