"""The reward for a purchase: how much of what was asked for it is, from 0 to 1. The formulas are the original's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rapidfuzz import fuzz, utils

from seed_opd.environments.webshop.goals import Goal
from seed_opd.environments.webshop.products import Product

ALIKE = 85
"""Two texts are taken for the same above this token-set ratio (0 to 100)."""

_COLORS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
    caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal
    dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory
    ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor
    mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand
    sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
    wheat white wine yellow
"""
COLORS = tuple(_COLORS.split())
"""Words that an option is reduced to, the first that it contains (original's table)."""

RELATED, UNRELATED, FAR, NOTHING_SHARED = 1.0, 0.5, 0.1, 0.0
CLOSE_TITLES, FAR_TITLES = 0.2, 0.1
SHARED_CATEGORIES = 2

Nouns = Callable[[Product], Sequence[str]]

_LATIN_1_ABOVE_ASCII = dict.fromkeys(range(128, 256))


def reward(goal: Goal, bought: Product, chosen: Mapping[str, str], price: float, nouns: Nouns) -> float:
    """The reward of buying a product with some options chosen at a price; `nouns` gives those of a product's title."""
    attributes = sum(_has(bought, attribute) for attribute in goal.attributes)
    options = sum(map(bool, _matched(goal.wanted, chosen.values())))
    cheap_enough = price <= goal.price_limit
    asked = len(goal.attributes) + len(goal.wanted) + 1
    return (attributes + options + cheap_enough) / asked * kinship(goal.product, bought, nouns)


def kinship(wanted: Product, bought: Product, nouns: Nouns) -> float:
    """How near a product is to the one wanted: 1, 0.5, 0.1 or 0; titles that share few nouns overrule everything."""
    shared = title_score(nouns(wanted), nouns(bought))
    if shared < FAR_TITLES:
        return FAR if shared > 0 else NOTHING_SHARED
    same_categories = _categories(wanted) & _categories(bought)
    related = bought.query == wanted.query or len(same_categories) >= SHARED_CATEGORIES or shared > CLOSE_TITLES
    return RELATED if related else UNRELATED


def title_score(wanted: Sequence[str], bought: Sequence[str]) -> float:
    """The nouns that two titles share over those of the one wanted, which count as often as they occur."""
    return len(set(wanted) & set(bought)) / len(wanted) if wanted else CLOSE_TITLES


def _categories(product: Product) -> set[str]:
    return {part.strip() for part in product.product_category.split("›")}


def _has(product: Product, attribute: str) -> bool:
    if any(_alike(own, attribute) for own in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def _matched(wanted: Iterable[tuple[str, str] | str], chosen: Iterable[str]) -> list[bool]:
    own = [_color_of(value) for value in chosen]
    return [any(_alike(value, _color_of(want)) for value in own) for want in wanted]


def _color_of(value: tuple[str, str] | str) -> tuple[str, str] | str:
    """The first colour in a text, else the text.

    The original hands in a wanted option of a synthetic goal as a (name, value) pair: there a colour is found only where it
    is all of the name or the value, and what is compared is the pair written out, so that "small" is as good as "x-small".
    """
    return next((color for color in COLORS if color in value), value)


def _alike(one: tuple[str, str] | str, other: tuple[str, str] | str) -> bool:
    return round(fuzz.token_set_ratio(_plain(one), _plain(other), processor=utils.default_process)) > ALIKE


def _plain(text: tuple[str, str] | str) -> str:
    """As the original's library compares texts: without Latin-1's letters beyond ASCII."""
    return str(text).translate(_LATIN_1_ABOVE_ASCII)
