"""The packaged catalogue."""

from __future__ import annotations

from collections import Counter

from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.generator import products

FINGERPRINT = "4c5ba4bfb33a144eb474cdfdd23f4a9c008fd281be57a422a766f7099533c140"


def test_it_is_always_the_same() -> None:
    assert list(products()) == list(products()) != list(products(seed=1))
    assert WebshopEnvironment("generated").catalogue.fingerprint == FINGERPRINT, (
        "the numbers in docs are of another catalogue"
    )


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
