"""Products, as the published files describe them and as the shop shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seed_opd.errors import UserError

LONGEST_ASIN = 10
NO_ATTRIBUTES = ("DUMMY_ATTR",)
NO_PRICE = 100.0

_NOT_NUMBER = re.compile(r"[^\d.]")


@dataclass(frozen=True, slots=True)
class Instruction:
    """A task that a person wrote about a product: the text, and the attributes and option values that it asks for."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product. `options` maps a name to its values; `prices` are one price in dollars, or a lowest and a highest.

    `instruction` and `instruction_attributes` are what synthetic goals are made of, empty where there are none. `nouns` are
    the nouns of the title, None where they were not recorded.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    options: Mapping[str, tuple[str, ...]]
    prices: tuple[float, ...]
    attributes: tuple[str, ...] = NO_ATTRIBUTES
    instruction: str = ""
    instruction_attributes: tuple[str, ...] = ()
    human: tuple[Instruction, ...] = ()
    nouns: tuple[str, ...] | None = None

    @property
    def price_tag(self) -> str:
        return " to ".join(f"${price}" for price in self.prices)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Product:
        values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in data.items()}
        values["options"] = {name: tuple(options) for name, options in data["options"].items()}
        values["human"] = tuple(_instruction_from_json(one) for one in data["human"])
        return cls(**values)


def read_products(
    items: Iterable[Any],
    attributes: Mapping[str, Any],
    human: Mapping[str, Any],
    nouns: Mapping[str, Sequence[str]],
) -> Iterator[Product]:
    """The products of a catalogue, in the file's order, without those that the original skips: an asin that is "nan", too
    long, or that came before.

    `attributes`, `human` and `nouns` are the other files, by asin. Raises UserError, naming the product and the field, for
    one that is not described as it should be.
    """
    seen: set[str] = set()
    for number, item in enumerate(items):
        asin = _text(item, "asin", f"product number {number}")
        if asin == "nan" or len(asin) > LONGEST_ASIN or asin in seen:
            continue
        seen.add(asin)
        yield _product(asin, item, attributes.get(asin, {}), human.get(asin, ()), nouns.get(asin))


def options_of(asin: str, field: Any) -> dict[str, tuple[str, ...]]:
    """The option groups of a product, by name, in lower case; a group without a list of values is no group."""
    if not field:
        return {}
    if not isinstance(field, dict):
        raise UserError(f"webshop: the customization_options of product {asin} are {field!r}; give an object of lists.")
    groups = {name: entries for name, entries in field.items() if entries is not None}
    return {name.lower(): tuple(_value(asin, name, entry) for entry in entries) for name, entries in groups.items()}


def prices_of(asin: str, field: Any) -> tuple[float, ...]:
    """One price, or the lowest and the highest, in dollars; 100 where the product has none."""
    if not field:
        return (NO_PRICE,)
    try:
        prices = tuple(float(_NOT_NUMBER.sub("", part)) for part in field.split("$")[1:])
    except (AttributeError, ValueError) as error:
        raise UserError(f"webshop: the pricing of product {asin} is {field!r}; write it like '$9.99'.") from error
    return prices[:2] or (NO_PRICE,)


def _product(asin: str, item: dict[str, Any], more: Any, human: Any, nouns: Sequence[str] | None) -> Product:
    where = f"product {asin}"
    bullets = item.get("small_description", "")
    if "customization_options" not in item:
        raise UserError(f"webshop: {where} has no customization_options; leave the field empty if it has no options.")
    try:
        return Product(
            asin=asin,
            title=_text(item, "name", where),
            description=_text(item, "full_description", where),
            bullets=tuple(bullets) if isinstance(bullets, list) else (bullets,),
            category=_text(item, "category", where),
            query=_text(item, "query", where).lower().strip(),
            product_category=_text(item, "product_category", where),
            options=options_of(asin, item["customization_options"]),
            prices=prices_of(asin, item.get("pricing")),
            attributes=tuple(more.get("attributes", NO_ATTRIBUTES)),
            instruction=more.get("instruction") or "",
            instruction_attributes=tuple(more.get("instruction_attributes", ())),
            human=tuple(_instruction(one) for one in human),
            nouns=None if nouns is None else tuple(nouns),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"webshop: the attribute or instruction file does not describe {where} as it should ({error!r}); fetch it again."
        ) from error


def _instruction_from_json(data: dict[str, Any]) -> Instruction:
    return Instruction(data["text"], tuple(data["attributes"]), tuple(data["options"]))


def _instruction(data: dict[str, Any]) -> Instruction:
    return Instruction(data["instruction"], tuple(data["instruction_attributes"]), tuple(data["instruction_options"]))


def _text(item: Any, field: str, where: str) -> str:
    value = item.get(field) if isinstance(item, dict) else None
    if not isinstance(value, str):
        raise UserError(f"webshop: {where} has {value!r} as its {field}; the published files have a text there.")
    return value


def _value(asin: str, name: str, entry: Any) -> str:
    value = entry.get("value") if isinstance(entry, dict) else None
    if not isinstance(value, str):
        raise UserError(f"webshop: product {asin} has {entry!r} among its options {name!r}; give objects with a value.")
    return value.strip().replace("/", " | ").lower()
