"""Retrievers behind one protocol: BM25, dense, and whatever a server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from seed_opd.environments.searchqa.passages import Corpus, read_corpus
from seed_opd.environments.searchqa.retrievers.base import Hit, Retriever, RetrieverFailed
from seed_opd.errors import UserError

KINDS = ("bm25", "dense", "remote")


def open_retriever(options: Mapping[str, Any], corpus: Callable[[], Corpus]) -> Retriever:
    """The retriever that options describe: `kind` (bm25 by default), `passages` (a file; `corpus` gives them otherwise), and
    for dense `model`, `query_prefix`, `passage_prefix`, `faiss`; for remote `url`, `form`, `timeout`, `attempts`.

    Raises UserError for an unknown kind or option, and where there is nothing to search.
    """
    rest = dict(options)
    kind, passages = rest.pop("kind", "bm25"), rest.pop("passages", None)
    if kind not in KINDS:
        raise UserError(f"retriever.kind: {kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    for name, missing in (("model", kind == "dense"), ("url", kind == "remote")):
        if missing and name not in rest:
            raise UserError(f"retriever.{name}: the {kind} retriever needs it; add it to the retriever's options.")
    try:
        if kind == "remote":
            from seed_opd.environments.searchqa.retrievers.remote import RemoteRetriever

            return RemoteRetriever(**rest)
        searched = _read(Path(passages).expanduser().resolve()) if passages else corpus()
        if kind == "dense":
            from seed_opd.environments.searchqa.retrievers.dense import DenseRetriever

            return DenseRetriever(searched, **rest)
        from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever

        return Bm25Retriever(searched, **rest)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise UserError(
            f"retriever: {', '.join(rest)} cannot all be given to {kind} ({error}); see the documentation."
        ) from error


@cache
def _read(path: Path) -> Corpus:
    return read_corpus(path)


__all__ = ["KINDS", "Hit", "Retriever", "RetrieverFailed", "open_retriever"]
