"""The original's answers, recorded: episodes, rewards, searches, goals. They are read where SEED_OPD_DATA has them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.goals import Goal
from seed_opd.environments.webshop.products import Product
from seed_opd.environments.webshop.reward import reward

FOLDER = Path(os.environ.get("SEED_OPD_DATA") or "nowhere") / "webshop"
RECORDINGS = ("episode_traces", "reward_cases", "search_cases", "goals_seed0", "items_shuffle_1000")
pytestmark = pytest.mark.skipif(
    not all((FOLDER / f"{name}.json").exists() for name in RECORDINGS),
    reason="needs the original products and the recorded answers in $SEED_OPD_DATA/webshop",
)
DIFFERENT_HITS = 25
"""Steps of the recorded episodes that show other hits than ours, out of 170."""

_ASIN = re.compile(r"(?<= \[SEP\] )[A-Z0-9]{10} \[SEP\] .*? \[SEP\] \$[\d.]+(?: to \$[\d.]+)?")


@cache
def recorded(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def environment() -> WebshopEnvironment:
    return WebshopEnvironment("original")


def without_hits(page: str) -> str:
    return _ASIN.sub("", page)


def test_recorded_episodes_are_the_same_but_for_the_hits(environment: WebshopEnvironment) -> None:
    steps = different = 0
    for trace in recorded("episode_traces"):
        first = environment.reset(environment.tasks("all")[trace["goal_index"]])
        assert first.text == trace["obs0"] and f"Instruction: {first.goal}" == trace["instruction"]
        for step in trace["steps"]:
            outcome, page = environment.step(step["action"]), environment.visit.page
            assert (outcome.score, outcome.done) == (step["reward"], step["done"])
            assert page.search_bar == step["avail_after"]["has_search_bar"]
            steps += 1
            if outcome.text == step["obs"]:
                assert list(page.clickables) == step["avail_after"]["clickables"]
                continue
            different += 1
            assert "Total results" in outcome.text and without_hits(outcome.text) == without_hits(step["obs"])
    assert (steps, different) == (170, DIFFERENT_HITS)


def test_recorded_rewards_are_equal(environment: WebshopEnvironment) -> None:
    products = by_asin(environment)
    for case in recorded("reward_cases"):
        goal, bought = case["goal"], products[case["purchased_asin"]]
        options = goal["goal_options"]
        wanted = Goal(
            products[goal["asin"]],
            goal["instruction_text"],
            tuple(goal["attributes"]),
            options if isinstance(options, dict) else tuple(options),
            goal["price_upper"],
        )
        nouns = {wanted.product.asin: case["goal_title_nouns"], bought.asin: case["purchased_title_nouns"]}
        assert reward(wanted, bought, case["options"], case["price"], lambda p, n=nouns: n[p.asin]) == case["reward"], case[
            "tag"
        ]  # type: ignore[misc]
        assert all(tuple(n) == products[asin].nouns for asin, n in nouns.items())


def test_searches_find_what_was_found(environment: WebshopEnvironment) -> None:
    shared = {10: 0, 50: 0}
    total = {10: 0, 50: 0}
    for case in recorded("search_cases"):
        hits = [environment.catalogue.product(i).asin for i in environment.catalogue.index.search(case["query"].lower())]
        wanted = [asin for asin, _ in case["hits"]]
        for depth in shared:
            shared[depth] += len(set(hits[:depth]) & set(wanted[:depth]))
            total[depth] += len(wanted[:depth])
    assert shared[50] / total[50] >= 0.98 and shared[10] / total[10] >= 0.97


def test_the_goals_are_the_original_s_for_seed_0(environment: WebshopEnvironment) -> None:
    goals = recorded("goals_seed0")
    rows = [[goal.product.asin, goal.options, goal.price_limit, goal.text] for goal in environment.goals]
    (digest,) = (value for name, value in goals.items() if name.startswith("sha256"))
    assert len(rows) == goals["n_goals"] and hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest() == digest
    for ours, theirs in zip(environment.goals, goals["first_60"], strict=False):
        product = ours.product
        assert (product.asin, ours.text, ours.options, ours.price_limit, list(ours.attributes)) == (
            *(theirs["asin"], theirs["instruction_text"], theirs["goal_options"], theirs["price_upper"]),
            theirs["attributes"],
        )
        assert (product.query, product.category, product.title) == (theirs["query"], theirs["category"], theirs["name"])
    positions = {environment.catalogue.product(i).asin: i for i in range(len(environment.catalogue))}
    for asin, price in goals["price_of"].items():
        assert environment.goals.product_prices[positions[asin]] == price


def test_the_thirteen_human_goals_are_there() -> None:
    environment = WebshopEnvironment("original", goals="human")
    assert len(environment.goals) == 13 and not environment.tasks("train")
    texts = {entry["instruction"].strip(".") for entries in recorded("items_human_ins").values() for entry in entries}
    assert {goal.text.rpartition(", and price lower")[0] or goal.text for goal in environment.goals} == texts


def by_asin(environment: WebshopEnvironment) -> dict[str, Product]:
    catalogue = environment.catalogue
    return {product.asin: product for product in map(catalogue.product, range(len(catalogue)))}
