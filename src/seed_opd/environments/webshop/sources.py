"""Where a catalogue comes from: the published files in a folder, or the generator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from seed_opd.environments.options import WrongOption
from seed_opd.environments.storage import DATA, original_folder
from seed_opd.environments.webshop import generator
from seed_opd.environments.webshop.json_files import read_array, read_object
from seed_opd.environments.webshop.products import Product, read_products
from seed_opd.errors import UserError

GENERATED = "generated"
ITEMS = "items_shuffle"
PREFERRED = (f"{ITEMS}_1000.json", f"{ITEMS}.json")
"""Names of the published product files: the small set, which agent training uses, before the full one."""


class Source(Protocol):
    """What a catalogue is compiled from. `key` changes when its content may have changed."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    def products(self) -> Iterator[Product]: ...

    def goals_without_product(self, asins: set[str]) -> list[str]:
        """The asins of tasks that are about products which are not in the catalogue."""

    @property
    def without_nouns(self) -> bool:
        """Whether no title nouns are recorded."""

    def check(self) -> None:
        """Raises UserError where something that is needed is missing; reads nothing."""


@dataclass(frozen=True)
class Published:
    """The published files in one folder, found by the product file's suffix ("_1000" for the small set).

    The attributes are needed; human instructions and recorded title nouns are read where they are.
    """

    items: Path

    @property
    def name(self) -> str:
        return str(self.items)

    @property
    def key(self) -> str:
        files = [self.items, *filter(None, (self._attributes, self._human, self._nouns))]
        stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return hashlib.sha256(json.dumps(stats).encode()).hexdigest()[:16]

    def products(self) -> Iterator[Product]:
        human = read_object(self._human) if self._human else {}
        nouns = read_object(self._nouns) if self._nouns else {}
        return read_products(read_array(self.items), read_object(self._attributes), human, nouns)

    def goals_without_product(self, asins: set[str]) -> list[str]:
        synthetic = [asin for asin, entry in read_object(self._attributes).items() if _has_instruction(entry)]
        return [asin for asin in (*synthetic, *(read_object(self._human) if self._human else ())) if asin not in asins]

    @property
    def without_nouns(self) -> bool:
        return self._nouns is None

    def check(self) -> None:
        if not self._attributes.is_file():
            raise UserError(
                f"webshop: {self._attributes} is missing, the attributes of the products in {self.items.name}; put it there."
            )

    @property
    def _suffix(self) -> str:
        return self.items.stem.removeprefix(ITEMS)

    @property
    def _attributes(self) -> Path:
        return self.items.with_name(f"items_ins_v2{self._suffix}.json")

    @property
    def _human(self) -> Path | None:
        path = self.items.with_name("items_human_ins.json")
        return path if path.exists() else None

    @property
    def _nouns(self) -> Path | None:
        path = self.items.with_name(f"title_nouns{self._suffix}.json")
        return path if path.exists() else None


@dataclass(frozen=True)
class Generated:
    """A catalogue that the package makes itself; seed 0 is the one to report numbers on."""

    seed: int = 0

    @property
    def name(self) -> str:
        return f"{GENERATED}:{self.seed}" if self.seed else GENERATED

    @property
    def key(self) -> str:
        return f"{GENERATED}-{generator.VERSION}-{self.seed}"

    def products(self) -> Iterator[Product]:
        return generator.products(self.seed)

    def goals_without_product(self, asins: set[str]) -> list[str]:
        return []

    @property
    def without_nouns(self) -> bool:
        return False

    def check(self) -> None:
        return None


def find(catalogue: str | None) -> Source:
    """The source for an option `catalogue`.

    It is "original", "generated" (others are "generated:<seed>"), a path, or None for the originals where there are any.
    Raises UserError, with where it looked, if there is nothing.
    """
    if catalogue is not None and catalogue.partition(":")[0] == GENERATED:
        return Generated(_seed(catalogue))
    if catalogue not in (None, "original"):
        return _at(Path(catalogue).expanduser())
    for place in original_places():
        if place.exists():
            return Published(place)
    if catalogue is None:
        return Generated()
    looked = ", ".join(map(str, original_places())) or f"nowhere, as {DATA} is not set"
    raise UserError(
        f"environment.options.catalogue: there are no original products (looked: {looked}); set {DATA} to the folder with "
        "webshop/ in it, or use catalogue: generated."
    )


def original_places() -> list[Path]:
    """Where the original products may lie, the preferred place first; empty if SEED_OPD_DATA is not set."""
    folder = original_folder("webshop")
    return [folder / name for name in PREFERRED] if folder else []


def _seed(catalogue: str) -> int:
    _, separator, seed = catalogue.partition(":")
    if separator and not seed.isdecimal():
        raise WrongOption("catalogue", catalogue, "has no number as its seed; write generated:7.")
    return int(seed or 0)


def _at(path: Path) -> Source:
    places = [path / name for name in PREFERRED] if path.is_dir() else [path]
    for place in places:
        if place.is_file():
            return Published(place)
    looked = " and ".join(map(str, places))
    raise UserError(f"environment.options.catalogue: {looked} cannot be found; give a folder with such a file, or the file.")


def _has_instruction(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(entry.get("instruction"))
