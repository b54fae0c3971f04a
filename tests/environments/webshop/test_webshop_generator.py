"""The packaged catalogue."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from seed_opd.environments.webshop import WebshopEnvironment, generator
from seed_opd.environments.webshop.catalogue import open_catalogue
from seed_opd.environments.webshop.generator import VERSION, products

GOALS = "7c428058cfa4065cb5217782ec866e81f3efda5d6b96e5b918a11f92105d5b99"
FINGERPRINT = "4c5ba4bfb33a144eb474cdfdd23f4a9c008fd281be57a422a766f7099533c140"


def test_it_is_always_the_same() -> None:
    assert list(products()) == list(products()) != list(products(seed=1))
    assert (VERSION, WebshopEnvironment("generated").catalogue.fingerprint) == (1, FINGERPRINT), (
        "the numbers in docs are of another catalogue, and what is in users' caches needs another version"
    )


def test_its_goals_are_too() -> None:
    lines = "\n".join(f"{goal.product.asin} {goal.text}" for goal in WebshopEnvironment("generated").goals)
    assert hashlib.sha256(lines.encode()).hexdigest() == GOALS


def test_finding_a_compiled_catalogue_makes_no_products(monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_catalogue("generated")
    monkeypatch.setattr(generator, "products", lambda seed: pytest.fail("all products are made again"))
    assert open_catalogue("generated") is first


def test_products_are_plausible() -> None:
    made = list(products())
    assert len(made) == len({product.asin for product in made}) == 400
    assert set(Counter(product.category for product in made).values()) == {80}
    for product in made:
        told = f"{product.title} {' '.join(product.bullets)}".lower()
        assert all(attribute in told for attribute in product.attributes) and len(set(product.attributes)) == 4
        assert set(product.instruction_attributes) <= set(product.attributes)
        assert all(len(set(values)) == len(values) >= 2 for values in product.options.values()) and product.options
        assert min(product.prices) > 2 and len(product.title) < 60 and product.nouns


def test_the_values_of_a_product_name_their_group() -> None:
    for product in products():
        values = [value for group in product.options.values() for value in group]
        assert len(set(values)) == len(values)
