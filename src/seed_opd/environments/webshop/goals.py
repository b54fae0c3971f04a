"""Goals: what to buy, as a text and as what is asked for. One canonical list, the original's for seed 0.

A list holds numbers only, and makes a goal's text when it is asked for, so that millions of goals fit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from seed_opd.environments.webshop.catalogue import Catalogue
from seed_opd.environments.webshop.products import Product
from seed_opd.errors import UserError

Kind = Literal["synthetic", "human"]
SEED = 0
"""The canonical list is the one that the original draws with this seed."""

PRICE_STEPS = tuple(10.0 * step for step in range(1, 100))
NEAREST = 4
NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Goal:
    """What to buy. `options` maps names to values, or is a list of values where a person wrote the task."""

    product: Product
    text: str
    attributes: tuple[str, ...]
    options: Mapping[str, str] | tuple[str, ...]
    price_limit: float

    @property
    def wanted(self) -> tuple[tuple[str, str] | str, ...]:
        """The options as the reward compares them."""
        return tuple(self.options.items()) if isinstance(self.options, Mapping) else self.options


class Goals(Sequence[Goal]):
    """The shuffled goals of a catalogue, and the price at which each product is sold, which is drawn with them.

    `product_prices` (products,) in dollars. Raises UserError where the catalogue has no goals of the kind.
    """

    def __init__(self, catalogue: Catalogue, kind: Kind = "synthetic", seed: int = SEED) -> None:
        self.kind = kind
        self._catalogue = catalogue
        counts = {"synthetic": catalogue.synthetic, "human": catalogue.human}[kind]
        if not counts.any():
            raise UserError(f"webshop: {catalogue.name} has no {kind} goals; choose other goals or another catalogue.")
        rng = random.Random(seed)
        ranges = catalogue.prices.tolist()
        self.product_prices = np.array([low if isnan(high) else rng.uniform(low, high) for low, high in ranges])
        self._limits = self._draw_limits(counts, rng)
        self._order = list(range(int(counts.sum())))
        random.Random(seed).shuffle(self._order)
        self._ends = np.cumsum(counts)

    def _draw_limits(self, counts: NDArray[np.int64], rng: random.Random) -> dict[int, tuple[float, ...]]:
        """Price limits by product: one for all its synthetic goals, one for each human one."""
        limits = {}
        for position in np.flatnonzero(counts).tolist():
            draws = 1 if self.kind == "synthetic" else int(counts[position])
            price = float(self.product_prices[position])
            limits[position] = tuple(_draw_limit(price, rng) for _ in range(draws))
        return limits

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Goal:  # type: ignore[override]
        number = self._order[index]
        position = int(np.searchsorted(self._ends, number, side="right"))
        which = number - int(self._ends[position - 1] if position else 0)
        product = self._catalogue.product(position)
        limits = self._limits[position]
        if self.kind == "human":
            return _human_goal(product, which, limits[which])
        return _synthetic_goal(product, which, limits[0])


def _draw_limit(price: float, rng: random.Random) -> float:
    """The larger of two among the four multiples of ten above the price; no limit where there are fewer than two."""
    above = [step for step in PRICE_STEPS if step > price][:NEAREST]
    return max(rng.sample(above, 2)) if len(above) >= 2 else NO_LIMIT


def _synthetic_goal(product: Product, which: int, limit: float) -> Goal:
    """The goal for one combination of options, counted with the last name (in alphabetical order) fastest."""
    options: dict[str, str] = {}
    for name in sorted(product.options, reverse=True):
        which, value = divmod(which, len(product.options[name]))
        options[name] = product.options[name][value]
    options = dict(sorted(options.items()))
    asked = ", and ".join(f"{name}: {value}" for name, value in options.items())
    text = product.instruction + (f" with {asked}" if asked else "") + _price_text(limit)
    return Goal(product, text, product.instruction_attributes, options, limit)


def _human_goal(product: Product, which: int, limit: float) -> Goal:
    instruction = [one for one in product.human if one.attributes][which]
    text = instruction.text.strip(".") + _price_text(limit)
    return Goal(product, text, instruction.attributes, instruction.options, limit)


def _price_text(limit: float) -> str:
    return f", and price lower than {limit:.2f} dollars" if limit < NO_LIMIT else ""
