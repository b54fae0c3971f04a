"""What the search engines of WebShop and Search-QA share: BM25's parameters, and the best of many scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

K1, B = 0.9, 0.4
"""Lucene's settings in Pyserini: of the original WebShop, and of the retrieval literature on the question sets."""


def best(scores: NDArray[Any], most: int) -> NDArray[np.intp]:
    """The positions of the scores (texts,) above 0, at most `most`, best first; of equal ones the earlier is first."""
    found = np.flatnonzero(scores > 0)
    if len(found) > most:
        found = found[scores[found] >= np.partition(scores[found], -most)[-most]]
    return found[np.argsort(-scores[found], kind="stable")][:most]
