"""What a shopper reads in WebShop's texts: the task, and the offers on a page. It needs none of the shop's packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

SEPARATOR = " [SEP] "
"""Between the parts of a page."""

RESULTS = re.compile(r"Page (\d+) \(Total results: \d+\)")
"""On every page of results."""

_LIMIT = re.compile(r",? and price lower than ([\d.]+) dollars$")
_PRICE = re.compile(r"\$([\d.]+)")
_WORD = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class Wish:
    """A task's text, understood: what it says before the options, the options, and the price in dollars not to be passed."""

    words: str
    options: Mapping[str, str]
    limit: float

    @property
    def query(self) -> str:
        """What to search: all that the task says, but the price."""
        return " ".join(_WORD.findall(f"{self.words} {' '.join(self.options.values())}"))

    @property
    def attributes(self) -> tuple[str, ...]:
        """What comes before a comma or after "with", and two words where the kind of product follows without a comma."""
        before, _, after = self.words.partition(" with ")
        *whole, kind = before.split(", ")
        first_words = " ".join(kind.split()[: max(1, min(2, len(kind.split()) - 1))])
        return tuple(part for part in (*whole, first_words, *after.split(", ")) if part)


def understand(task: str) -> Wish:
    """Read a task's text; any text is understood somehow."""
    text = task.strip().lower()
    limit = _LIMIT.search(text)
    text = _LIMIT.sub("", text)
    words, options = text, {}
    for match in reversed(list(re.finditer(" with ", text))):
        pairs = [piece.partition(": ") for piece in text[match.end() :].split(", and ")]
        if all(separator for _, separator, _ in pairs):
            words, options = text[: match.start()], {name: value for name, _, value in pairs}
            break
    return Wish(words.removeprefix("find me "), options, float(limit[1]) if limit else float("inf"))


@dataclass(frozen=True, slots=True)
class Offer:
    """A product on a results page; `price` is the lowest in dollars."""

    asin: str
    title: str
    price: float


def read_offers(page: str) -> list[Offer]:
    """The products on a results page, in its order."""
    texts = page.partition("Next >")[2].split(SEPARATOR)[1:]
    found = zip(texts[::3], texts[1::3], texts[2::3], strict=False)
    return [Offer(asin.lower(), title, lowest(price)) for asin, title, price in found]


def lowest(price: str) -> float:
    """The first price in dollars of a text, 0 where there is none."""
    found = _PRICE.search(price)
    return float(found[1]) if found else 0.0
