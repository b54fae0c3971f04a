"""Pages of the shop as text: what is shown, joined by " [SEP] ", and what can be clicked, in the original's words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seed_opd.environments.shop_texts import SEPARATOR
from seed_opd.environments.webshop.products import Product

RESULTS_PER_PAGE = 10

SEARCH = "search"
BACK = "back to search"
PREVIOUS = "< prev"
NEXT = "next >"
BUY = "buy now"
DETAILS = ("description", "features", "reviews")


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its text and, in lower case, its buttons, links to products and option values."""

    text: str
    buttons: tuple[str, ...]
    links: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    search_bar: bool = False

    @property
    def clickables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.buttons, *self.links, *self.values)))


def search_page(task: str) -> Page:
    return Page(_join("WebShop", *_head(task), "Search"), (SEARCH,), search_bar=True)


def results_page(task: str, number: int, total: int, products: Sequence[Product]) -> Page:
    """Page `number`, from 1, of `total` results: the products on it. There is always a next page, if an empty one."""
    shown = [text for product in products for text in (product.asin, product.title, product.price_tag)]
    buttons = ("Back to Search", *(("< Prev",) if number > 1 else ()), "Next >")
    title = f"Page {number} (Total results: {total})"
    text = _join(*_head(task), buttons[0], title, *buttons[1:], *shown)
    return Page(text, tuple(map(str.lower, buttons)), tuple(product.asin.lower() for product in products))


def item_page(task: str, product: Product) -> Page:
    """A product's page; it does not show which options are chosen."""
    options = [text for name, values in product.options.items() for text in (name, *values)]
    facts = [product.title, f"Price: {product.price_tag}", "Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"]
    values = tuple(value for group in product.options.values() for value in group)
    text = _join(*_head(task), "Back to Search", "< Prev", *options, *facts)
    return Page(text, (BACK, PREVIOUS, *DETAILS, BUY), values=values)


def detail_page(task: str, product: Product, detail: str) -> Page:
    """The description or the features of a product; there never are reviews."""
    lines = {"description": (product.description,), "features": product.bullets, "reviews": ()}[detail]
    return Page(_join(*_head(task), "Back to Search", "< Prev", *lines), (BACK, PREVIOUS))


def receipt(product: Product, chosen: Mapping[str, str], reward: float) -> Page:
    """The last page, which tells the reward; the original shows it with the buttons of the search page."""
    text = _join(
        *("Thank you for shopping with us!", "Your code:", "None", "(Paste it in your MTurk interface.)"),
        *(
            "Purchased",
            "asin",
            product.asin,
            "options",
            json.dumps(dict(chosen), sort_keys=True),
            "attrs",
            "None",
            "category",
            "None",
        ),
        *("query", "None", "product category", "None", "Target", "asin", "options", "attrs", "price upper"),
        *("instuction text", "category", "product category", "query", "Goal", "None"),
        *("Reward", "Your score (min 0.0, max 1.0)", str(reward), "Reward Details", "None"),
    )
    return Page(text, (SEARCH,), search_bar=True)


def _head(task: str) -> tuple[str, str]:
    return "Instruction:", task


def _join(*texts: str) -> str:
    return SEPARATOR.join(stripped for text in texts if (stripped := text.strip()))
