"""Retrievers behind one protocol: BM25, dense, and whatever a server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seed_opd.environments.options import WrongOption, check_options
from seed_opd.environments.searchqa.data import Data
from seed_opd.environments.searchqa.passages import Corpus, read_corpus
from seed_opd.environments.searchqa.retrievers.base import Hit, Retriever, RetrieverFailed
from seed_opd.errors import UserError

KINDS = ("bm25", "dense", "remote")
PACKAGES = {"bm25": ("search", ("bm25s", "Stemmer")), "dense": ("dense", ("sentence_transformers",)), "remote": ("", ())}
"""The extra of a kind, and what it installs."""


def check_retriever(options: Mapping[str, Any], data: Data) -> None:
    """Raises UserError for wrong options, missing packages and missing files; opens nothing."""
    kind, passages, rest = _parts(options)
    if kind not in KINDS:
        raise WrongOption("kind", kind, f"is unknown; choose one of {', '.join(KINDS)}.", "retriever")
    for name, missing in (("model", kind == "dense"), ("url", kind == "remote")):
        if missing and name not in rest:
            raise UserError(f"retriever.{name}: the {kind} retriever needs it; add it to the retriever's options.")
    check_options(_class_of(kind), rest, "retriever")
    if kind == "remote":
        if passages is not None:
            raise WrongOption("passages", passages, "is not for remote; leave it out, a server has its own.", "retriever")
        if not rest["url"].startswith(("http://", "https://")):
            raise WrongOption("url", rest["url"], "is no address; write it as in 'http://localhost:8000'.", "retriever")
    elif passages is None:
        data.check_corpus()
    elif not isinstance(passages, str) or not Path(passages).expanduser().is_file():
        raise UserError(f"retriever.passages: {passages!r} is no file; give a JSON-lines file of passages.")
    extra, packages = PACKAGES[kind]
    for package in packages:
        if find_spec(package) is None:
            raise UserError(
                f"retriever: {kind} needs {package}, which is not installed; run: pip install 'seed-opd[{extra}]'."
            )


def open_retriever(options: Mapping[str, Any], data: Data) -> Retriever:
    """The retriever that options describe: `kind` (bm25 by default), `passages` (a file; those of `data` otherwise), and
    for dense `model`, `query_prefix`, `passage_prefix`, `faiss`; for remote `url`, `form`, `timeout`, `attempts`.

    Raises UserError for an unknown kind or option, and where there is nothing to search.
    """
    check_retriever(options, data)
    kind, passages, rest = _parts(options)
    if kind == "remote":
        return _class_of(kind)(**rest)
    return _class_of(kind)(_read(Path(passages).expanduser().resolve()) if passages else data.corpus(), **rest)


def _parts(options: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """The kind, the file of passages, and what its class takes."""
    rest = dict(options)
    return rest.pop("kind", "bm25"), rest.pop("passages", None), rest


def _class_of(kind: str) -> Callable[..., Retriever]:
    if kind == "remote":
        from seed_opd.environments.searchqa.retrievers.remote import RemoteRetriever

        return RemoteRetriever
    if kind == "dense":
        from seed_opd.environments.searchqa.retrievers.dense import DenseRetriever

        return DenseRetriever
    from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever

    return Bm25Retriever


@cache
def _read(path: Path) -> Corpus:
    return read_corpus(path)


__all__ = ["KINDS", "Hit", "Retriever", "RetrieverFailed", "check_retriever", "open_retriever"]
