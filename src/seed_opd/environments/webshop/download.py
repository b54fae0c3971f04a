"""Which products there are, and where the originals were looked for; a person fetches them, from Google Drive."""

from __future__ import annotations

from collections.abc import Iterator

from seed_opd.environments.storage import DATA
from seed_opd.environments.webshop.catalogue import open_catalogue
from seed_opd.environments.webshop.nouns import MODEL, PACKAGES
from seed_opd.environments.webshop.sources import original_places

FILES = "items_shuffle_1000.json, items_ins_v2_1000.json and items_human_ins.json"
NOUNS = f"the reward compares them, so run pip install {PACKAGES} and set environment.options.spacy_model={MODEL}."
HOW = "https://github.com/princeton-nlp/WebShop (setup.sh names where they are)"


def report() -> Iterator[str]:
    """Sentences about the data: what is in the package, where originals were looked for, and how to get them."""
    yield f"Packaged catalogue: {_contents('generated')}"
    places = original_places()
    if not places:
        yield f"Original products: {DATA} is not set, so they were not looked for; set it to the folder to keep data in."
        return
    yield f"Original products: looked for {', '.join(map(str, places))}."
    if any(place.exists() for place in places):
        yield f"Original products: {_contents('original')}"
        if open_catalogue("original").without_nouns:
            yield f"Nouns of titles: not recorded for every product; {NOUNS}"
    else:
        yield f"Original products: none; put {FILES} into {places[0].parent}, from {HOW}."
        yield f"Nouns of titles: not among these files; {NOUNS}"


def _contents(option: str) -> str:
    catalogue = open_catalogue(option)
    synthetic, human = int(catalogue.synthetic.sum()), int(catalogue.human.sum())
    goals = f"{synthetic} synthetic and {human} human goals"
    return f"{catalogue.name} with {len(catalogue)} products and {goals} (fingerprint {catalogue.fingerprint[:16]})."
