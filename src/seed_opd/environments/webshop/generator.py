"""The packaged catalogue: products that we make ourselves, seeded, so that everything works without the originals.

A product has four features. Its title tells two of them, its first bullet, which is searched too, a third, and its second
bullet the fourth; its task asks for two of the four. So a title alone does not always tell whether a product is the one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from seed_opd.environments.webshop.products import Product

SEED = "webshop/catalogue"
VERSION = 1
"""It changes with the products that a seed makes."""

PRODUCTS_PER_KIND = 10
FEATURES, IN_TITLE, ASKED = 4, 2, 2
FEWEST_VALUES, MOST_VALUES = 2, 4
WITH_PRICE_RANGE = 0.2
"""Share of the products whose price lies between two, as some of the originals' does."""


@dataclass(frozen=True)
class Kind:
    """A kind of product; `price` is the range in whole dollars, `options` the pool of values by name."""

    title: str
    department: str
    query: str
    path: str
    price: tuple[int, int]
    features: Sequence[str]
    options: Mapping[str, Sequence[str]]


def products(seed: int = 0) -> Iterator[Product]:
    """All products of the catalogue with a seed, always the same, in an order that mixes the departments."""
    rng = random.Random(f"{SEED}/{seed}")
    kinds = [kind for kind in _kinds() for _ in range(PRODUCTS_PER_KIND)]
    rng.shuffle(kinds)
    for number, kind in enumerate(kinds):
        yield _product(f"B{number:03d}", kind, rng)


def _product(asin: str, kind: Kind, rng: random.Random) -> Product:
    brand = rng.choice(_brands())
    features = rng.sample(kind.features, FEATURES)
    asked = rng.sample(features, ASKED)
    title = f"{brand} {' '.join(features[:IN_TITLE])} {kind.title}".title().replace("Usb", "USB").replace("Usda", "USDA")
    return Product(
        asin=asin,
        title=title,
        description=f"A {kind.title} by {brand}.",
        bullets=tuple(f"{feature}." for feature in features[IN_TITLE:]),
        category=kind.department,
        query=kind.query,
        product_category=f"{kind.path} › {kind.query} › {kind.title}",
        options={name: _values(pool, rng) for name, pool in kind.options.items()},
        prices=_prices(kind.price, rng),
        attributes=tuple(features),
        instruction=f"Find me {', '.join(asked)} {kind.query}",
        instruction_attributes=tuple(asked),
        nouns=(brand.lower(), *kind.title.split()),
    )


def _values(pool: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    """Some values of a pool, in the pool's order."""
    chosen = rng.sample(range(len(pool)), min(len(pool), rng.randint(FEWEST_VALUES, MOST_VALUES)))
    return tuple(pool[index] for index in sorted(chosen))


def _prices(bounds: tuple[int, int], rng: random.Random) -> tuple[float, ...]:
    low = rng.randint(*bounds)
    if rng.random() < WITH_PRICE_RANGE:
        return low - 0.01, low + rng.randint(2, 8) - 0.01
    return (low - 0.01,)


@cache
def _table() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("catalogue.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return table


@cache
def _brands() -> tuple[str, ...]:
    return tuple(_table()["brands"].split())


@cache
def _kinds() -> tuple[Kind, ...]:
    pools = _table()["pools"]
    return tuple(
        Kind(
            title=title,
            department=name,
            query=entry["query"],
            path=department["path"],
            price=tuple(map(int, entry["price"].split("-"))),  # type: ignore[arg-type]
            features=tuple(entry["features"]),
            options={option: tuple(pools[pool]) for option, pool in entry["options"].items()},
        )
        for name, department in _table()["departments"].items()
        for title, entry in department["kinds"].items()
    )
