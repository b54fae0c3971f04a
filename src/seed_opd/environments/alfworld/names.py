"""From the identifiers in a problem to the names that a player reads: `mug_bar__plus_...` becomes `mug 1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

SEPARATOR = "_bar_"
BASIN = "basin"
SYMBOLS = {"_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}


def readable_names(identifiers: Iterable[str]) -> dict[str, str]:
    """Name every identifier: its kind and a number that counts down in the order of the identifiers.

    What has no coordinates gets no number, but keeps the space before it. A part of a sink or bath that holds things is
    named "sinkbasin" or "bathtubbasin".
    """
    kinds = {identifier: _kind(identifier) for identifier in sorted(identifiers)}
    left = Counter(kind for identifier, kind in kinds.items() if SEPARATOR in identifier)
    names = {}
    for identifier, kind in kinds.items():
        if SEPARATOR in identifier:
            names[identifier] = f"{kind} {left[kind]}"
            left[kind] -= 1
        else:
            names[identifier] = f"{kind} "
    return names


def _kind(identifier: str) -> str:
    kind = identifier.split(SEPARATOR, 1)[0]
    if "_" in kind:
        for word, symbol in SYMBOLS.items():
            kind = kind.replace(word, symbol)
    return kind + BASIN if BASIN in identifier and SEPARATOR in identifier else kind
