"""The reward, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from corner_shop import MUG, SHIRT, TEA, shop
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.goals import Goal
from seed_opd.environments.webshop.products import Product, read_products
from seed_opd.environments.webshop.reward import kinship, reward, title_score

ATTRIBUTES = {"B0MUG": {"attributes": ["leak proof", "stainless steel"]}}
MUG_PRODUCT, TEA_PRODUCT, SHIRT_PRODUCT = read_products([MUG, TEA, SHIRT], ATTRIBUTES, {}, {})
GOAL = Goal(MUG_PRODUCT, "", ("leak proof", "dishwasher safe", "gold"), {"color": "red", "size": "small"}, 20.0)


def same(product: Product) -> Sequence[str]:
    return ("mug",)


@pytest.mark.parametrize(
    ("chosen", "price", "expected"),
    [
        ({"color": "red", "size": "small"}, 20.0, 5 / 6),
        ({"color": "red"}, 20.0, 4 / 6),
        ({"color": "navy | white", "size": "small"}, 20.01, 3 / 6),
        ({}, 30.0, 2 / 6),
        ({"size": "x-small"}, 30.0, 2 / 6),
    ],
)
def test_the_share_of_what_was_asked_for(chosen: dict[str, str], price: float, expected: float) -> None:
    assert reward(GOAL, MUG_PRODUCT, chosen, price, same) == expected


def test_a_small_one_is_as_good_as_an_extra_small_one() -> None:
    """As in the original, where the wanted name and value, written out, are compared with the chosen value."""
    goal = Goal(MUG_PRODUCT, "", (), {"size": "x-small"}, 20.0)
    assert reward(goal, MUG_PRODUCT, {"size": "small"}, 1.0, same) == 1.0


def test_options_that_a_person_named_are_compared_by_their_colour() -> None:
    goal = Goal(MUG_PRODUCT, "", (), ("dark red",), 20.0)
    assert reward(goal, MUG_PRODUCT, {"color": "light red"}, 1.0, same) == 1 / 2  # "dark" against "light"
    assert reward(goal, MUG_PRODUCT, {"color": "dark pink"}, 1.0, same) == 1.0  # "dark" is the first colour of both


@pytest.mark.parametrize(
    ("wanted", "bought", "expected"),
    [
        (["mug"], ["mug"], 1.0),
        (["a", "b", "c", "d", "mug"], ["mug"], 0.5),  # 0.2 is not above 0.2
        (["a", "b", "c", "mug"], ["mug"], 1.0),
        ([str(n) for n in range(12)] + ["mug"], ["mug"], 0.1),
        (["mug", "mug", "a"], ["mug", "b"], 1.0),
        (["a"], ["b"], 0.0),
        ([], ["b"], 0.5),
    ],
)
def test_kinship_of_unrelated_categories_goes_by_the_titles(wanted: list[str], bought: list[str], expected: float) -> None:
    nouns = {"B0MUG": wanted, "B0TEA": bought}
    assert kinship(MUG_PRODUCT, TEA_PRODUCT, lambda product: nouns[product.asin]) == expected


def test_two_categories_in_common_are_kin_and_one_is_not() -> None:
    nouns = {"B0MUG": ["a", "b", "c", "d", "mug"], "B0TEA": ["mug"]}  # too little in common for the titles alone
    for categories, expected in (("Home › Pots", 0.5), ("Mugs› Home", 1.0)):
        bought = Product.from_json({**TEA_PRODUCT.to_json(), "product_category": categories})
        assert kinship(MUG_PRODUCT, bought, lambda product: nouns[product.asin]) == expected


def test_titles_that_share_nothing_overrule_the_same_query() -> None:
    nouns = {"B0MUG": ["a"], "B0TEA": ["b"]}
    related = Product.from_json({**TEA_PRODUCT.to_json(), "query": MUG_PRODUCT.query})
    assert kinship(MUG_PRODUCT, related, lambda product: nouns[product.asin]) == 0.0
    nouns["B0MUG"] = [*"cdefg", "b", "b"]  # a duplicate counts in the length alone
    assert (
        title_score(nouns["B0MUG"], nouns["B0TEA"]) == 1 / 7 and kinship(MUG_PRODUCT, related, lambda p: nouns[p.asin]) == 1
    )


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3), st.floats(0, 100), st.sampled_from([same]))
def test_a_reward_is_a_share(chosen: dict[str, str], price: float, nouns: object) -> None:
    assert 0 <= reward(GOAL, SHIRT_PRODUCT, chosen, price, same) <= 1


def test_buying_what_is_asked_for_wins_in_the_packaged_catalogue_and_other_values_do_not() -> None:
    environment = WebshopEnvironment("generated")
    for goal in list(environment.goals)[::25]:
        product, options = goal.product, dict(goal.options)  # type: ignore[call-overload]
        assert reward(goal, product, options, product.prices[0], lambda p: p.nouns or ()) == 1.0
        for name, value in options.items():
            for other in set(product.options[name]) - {value}:
                assert reward(goal, product, {**options, name: other}, product.prices[0], lambda p: p.nouns or ()) < 1.0


def test_the_price_of_a_purchase_is_the_one_that_was_drawn(tmp_path: Path) -> None:
    catalogue = shop(tmp_path / "shop")
    environment = WebshopEnvironment(catalogue.name)
    environment.reset(environment.tasks("all")[0])
    environment.step("search[mug]")
    environment.step("click[b0mug]")
    assert environment.step("click[buy now]").score == pytest.approx(2 / 4)  # attribute and price, no options
