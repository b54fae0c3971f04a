"""A catalogue, compiled once into a folder of the user's cache and read from there without loading it.

The folder holds the products as JSON lines with their offsets, what goals are made of as arrays, and the search index. A
catalogue of a million products so costs memory only for what is looked at.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterator
from functools import lru_cache, partial
from math import nan, prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_opd.environments.storage import cache_folder, made_once
from seed_opd.environments.webshop import search
from seed_opd.environments.webshop.products import Product
from seed_opd.environments.webshop.sources import Source, find
from seed_opd.errors import UserError

FORMAT = 1
"""Part of the compiled folder's name; it changes with what is in the folder."""

PRODUCTS_KEPT = 4096
"""Parsed products that a catalogue keeps."""

CATALOGUES_KEPT = 16
"""Open catalogues that are shared by the environments of a process."""


class Catalogue:
    """The products of a compiled catalogue, by their position in it.

    `prices` (products, 2) are the lowest and highest price, the latter nan for a single price; `synthetic` and `human`
    (products,) the numbers of goals.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        self.fingerprint: str = about["fingerprint"]
        self.without_nouns: int = about["without_nouns"]
        self.orphans: list[str] = about["orphans"]
        self.prices: NDArray[np.float64] = np.load(folder / "prices.npy", mmap_mode="r")
        self.synthetic: NDArray[np.int64] = np.load(folder / "synthetic.npy", mmap_mode="r")
        self.human: NDArray[np.int64] = np.load(folder / "human.npy", mmap_mode="r")
        self.index = search.Index(folder / "index")
        self._offsets = np.load(folder / "offsets.npy", mmap_mode="r")
        with (folder / "products.jsonl").open("rb") as stream:
            self._lines = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self.product = lru_cache(maxsize=PRODUCTS_KEPT)(self._product)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _product(self, position: int) -> Product:
        line = self._lines[self._offsets[position] : self._offsets[position + 1]]
        return Product.from_json(json.loads(line))


def open_catalogue(catalogue: str | None = None) -> Catalogue:
    """The catalogue for an option `catalogue` (`sources.find` says which); the same one again for the same source."""
    return open_source(find(catalogue))


def open_source(source: Source) -> Catalogue:
    """The catalogue of a source, compiled now if it is not."""
    source.check()
    return _open(source.name, _compiled(source))


def open_unkept(source: Source) -> Catalogue:
    """A catalogue that is compiled into a temporary folder, whose files are removed once they are mapped."""
    with TemporaryDirectory(prefix="seed-opd-") as folder:
        compile_catalogue(source, Path(folder) / "catalogue")
        return Catalogue(Path(folder) / "catalogue", source.name)


@lru_cache(maxsize=CATALOGUES_KEPT)
def _open(name: str, folder: Path) -> Catalogue:
    return Catalogue(folder, name)


def _compiled(source: Source) -> Path:
    """The compiled folder of a source, made now if it is not there."""
    target = cache_folder() / f"webshop-{FORMAT}-{source.key}"
    return made_once(target, f"webshop: {source.name}", partial(compile_catalogue, source))


def compile_catalogue(source: Source, folder: Path) -> None:
    """Write the compiled form of a source into a new folder; raises UserError for bad data or none."""
    folder.mkdir()
    writer = _Writer(folder)
    search.build(writer.texts(source.products()), folder / "index")
    writer.finish(source)


class _Writer:
    """Writes products as they come by, and hands on their texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets = [0]
        self._prices: list[tuple[float, float]] = []
        self._synthetic: list[int] = []
        self._human: list[int] = []
        self._asins: set[str] = set()
        self._without_nouns = 0
        self._hash = hashlib.sha256()

    def texts(self, products: Iterator[Product]) -> Iterator[str]:
        with (self._folder / "products.jsonl").open("wb") as stream:
            for product in products:
                line = json.dumps(product.to_json(), ensure_ascii=False).encode() + b"\n"
                stream.write(line)
                self._hash.update(line)
                self._note(product, len(line))
                yield search.text_of(product)
        if not self._asins:
            raise UserError("webshop: the product file holds no product; give the published file.")

    def _note(self, product: Product, size: int) -> None:
        self._offsets.append(self._offsets[-1] + size)
        self._prices.append((product.prices[0], product.prices[1] if len(product.prices) > 1 else nan))
        self._synthetic.append(prod(map(len, product.options.values())) if product.instruction else 0)
        self._human.append(sum(bool(one.attributes) for one in product.human))
        self._asins.add(product.asin)
        self._without_nouns += product.nouns is None

    def finish(self, source: Source) -> None:
        arrays: dict[str, Any] = {
            "offsets": np.array(self._offsets, dtype=np.int64),
            "prices": np.array(self._prices, dtype=np.float64),
            "synthetic": np.array(self._synthetic, dtype=np.int64),
            "human": np.array(self._human, dtype=np.int64),
        }
        for name, array in arrays.items():
            np.save(self._folder / f"{name}.npy", array)
        about = {
            "fingerprint": self._hash.hexdigest(),
            "without_nouns": self._without_nouns,
            "orphans": source.goals_without_product(self._asins),
        }
        (self._folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
