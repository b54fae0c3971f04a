"""Search over products: BM25 as Lucene computes it, with Lucene's English analysis, on disk and memory-mapped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import bm25s
import Stemmer

from seed_opd.environments.ranking import K1, B, best
from seed_opd.environments.webshop.products import Product

MOST_HITS = 50

_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""The 33 English stop-words of Lucene."""

# Lucene's standard tokenizer: letters stay together across an apostrophe, dot or colon, digits across a dot or comma.
TOKEN = re.compile(r"\w+(?:(?:(?<=[^\W\d_])['’.:·](?=[^\W\d_])|(?<=\d)['’.,;](?=\d))\w+)*")
POSSESSIVE = re.compile(r"['’]s$")

QUERIES_KEPT = 4096
STEMS_KEPT = 1 << 16

_STEMMER = Stemmer.Stemmer("porter")


def text_of(product: Product) -> str:
    """What of a product is searched: title, description, first bullet and options."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options.items())
    first_bullet = product.bullets[0] if product.bullets else ""
    return f"{product.title} {product.description} {first_bullet} {options}".lower()


def analyze(text: str) -> list[str]:
    """The terms of a text: lower case, without possessives and stop-words, stemmed (Porter)."""
    words = (POSSESSIVE.sub("", word) for word in TOKEN.findall(text.lower()))
    return [_stem(word) for word in words if word not in STOP_WORDS]


def build(texts: Iterable[str], folder: Path) -> None:
    """Write the index of some texts into a folder."""
    vocabulary: dict[str, int] = {}
    documents = [[vocabulary.setdefault(term, len(vocabulary)) for term in analyze(text)] for text in texts]
    index = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy", csc_backend="numpy")
    vocabulary.setdefault("", len(vocabulary))  # bm25s wants at least one term
    index.index((documents, vocabulary), show_progress=False)
    index.save(folder, show_progress=False)


class Index:
    """An index on disk; its arrays are memory-mapped, so that only what queries touch is in memory."""

    def __init__(self, folder: Path) -> None:
        self._index = bm25s.BM25.load(folder, mmap=True)
        self.search = lru_cache(maxsize=QUERIES_KEPT)(self._search)

    def _search(self, query: str) -> tuple[int, ...]:
        """The positions of the best texts, at most 50, best first; of equally good ones the earlier is first."""
        terms = self._index.get_tokens_ids(analyze(query))
        if not terms:
            return ()
        return tuple(best(self._index.get_scores_from_ids(terms), MOST_HITS).tolist())


@lru_cache(maxsize=STEMS_KEPT)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))
