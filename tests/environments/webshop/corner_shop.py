"""A shop of three products, written in the published files' format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seed_opd.environments.webshop.catalogue import Catalogue, open_catalogue

MUG: dict[str, Any] = {
    "asin": "B0MUG",
    "name": "Acme Steel Travel Mug",
    "full_description": "Keeps tea hot. ",
    "small_description": ["Leak proof lid ", "Dishwasher safe"],
    "category": "garden",
    "query": " Travel Mugs ",
    "product_category": "Home › Kitchen › Mugs",
    "customization_options": {"Color": [{"value": " Navy/White"}, {"value": "Red"}], "Size": [{"value": "Small"}]},
    "pricing": "$12.50",
}
TEA: dict[str, Any] = {
    **MUG,
    "asin": "B0TEA",
    "name": "Oolong Tea",
    "full_description": "",
    "small_description": "Whole leaves",
    "category": "grocery",
    "query": "teas",
    "product_category": "Grocery › Teas",
    "customization_options": "",
    "pricing": "$1,200.00 - $1,300.99",
}
SHIRT: dict[str, Any] = {
    **MUG,
    "asin": "B0SHIRT",
    "name": "Cotton Shirt",
    "full_description": "A shirt.",
    "small_description": [],
    "category": "fashion",
    "query": "shirts",
    "product_category": "Clothing › Shirts",
    "customization_options": {
        "Size": [{"value": "Small"}, {"value": "X-Small"}],
        "Fit": [{"value": "small"}],
        "Color": None,
    },
    "pricing": None,
}
ATTRIBUTES: dict[str, Any] = {
    "B0MUG": {
        "attributes": ["leak proof", "stainless steel"],
        "instruction": "Find me leak proof travel mugs",
        "instruction_attributes": ["leak proof"],
    },
    "B0TEA": {"attributes": []},
}
HUMAN: dict[str, Any] = {
    "B0SHIRT": [
        {"instruction": "i want a small shirt.", "instruction_attributes": ["cotton"], "instruction_options": ["small"]},
        {"instruction": "nothing asked", "instruction_attributes": [], "instruction_options": []},
    ]
}
NOUNS = {"B0MUG": ["acme", "mug"], "B0TEA": ["oolong", "tea"], "B0SHIRT": ["cotton", "shirt"]}


def write(folder: Path, **changes: Any) -> Path:
    """Write the files; `changes` replaces the content of one of them, or leaves it out where it is None."""
    contents = {
        "items_shuffle_1000": [MUG, TEA, SHIRT],
        "items_ins_v2_1000": ATTRIBUTES,
        "items_human_ins": HUMAN,
        "title_nouns_1000": NOUNS,
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def shop(folder: Path, **changes: Any) -> Catalogue:
    return open_catalogue(str(write(folder, **changes)))
