"""When an answer counts: exact match after normalisation, as in Search-R1 (and SQuAD before it)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower-case, without ASCII punctuation, without the articles a, an and the, with single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def is_correct(answer: str, targets: Iterable[str]) -> bool:
    """Whether an answer is one of the targets after normalisation."""
    given = normalise(answer)
    return any(given == normalise(target) for target in targets)
