"""The canonical goal list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corner_shop import SHIRT, shop

from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.goals import NO_LIMIT, Goals
from seed_opd.errors import UserError
from seed_opd.trajectory import Task


def test_there_is_a_goal_for_each_combination_of_options(tmp_path: Path) -> None:
    goals = Goals(shop(tmp_path / "shop"))
    assert sorted(tuple(goal.options.values()) for goal in goals) == [("navy | white", "small"), ("red", "small")]  # type: ignore[union-attr]
    limit = goals[0].price_limit
    assert {goal.price_limit for goal in goals} == {limit} and limit in (30.0, 40.0, 50.0)
    first = next(goal for goal in goals if "red" in goal.text)
    asked = f"with color: red, and size: small, and price lower than {limit:.2f} dollars"
    assert first.text == f"Find me leak proof travel mugs {asked}"


def test_human_goals_keep_their_list_of_options_and_lose_their_dot(tmp_path: Path) -> None:
    (goal,) = Goals(shop(tmp_path / "shop"), "human")
    assert goal.options == ("small",) == goal.wanted and goal.attributes == ("cotton",)
    assert goal.text.startswith("i want a small shirt, and price lower than 1") and "shirt." not in goal.text


def test_a_price_beyond_the_last_step_has_no_limit(tmp_path: Path) -> None:
    (goal,) = Goals(
        shop(tmp_path / "shop", items_shuffle_1000=[{**SHIRT, "pricing": "$985.0"}], items_ins_v2_1000={}), "human"
    )
    assert goal.price_limit == NO_LIMIT and goal.text == "i want a small shirt"


def test_prices_lie_in_their_range_and_another_seed_draws_others(tmp_path: Path) -> None:
    catalogue = shop(tmp_path / "shop")
    prices = {seed: Goals(catalogue, seed=seed).product_prices.tolist() for seed in range(5)}
    assert all(mug == 12.5 and 1200 <= tea <= 1300.99 and shirt == 100 for mug, tea, shirt in prices.values())
    assert len({tea for _, tea, _ in prices.values()}) == 5


def test_test_is_the_first_500_and_train_the_rest() -> None:
    environment = WebshopEnvironment("generated")
    goals = {split: [environment.goal(task) for task in environment.tasks(split)] for split in ("all", "train", "test")}
    assert goals["test"] + goals["train"] == goals["all"] == list(environment.goals) and len(goals["test"]) == 500
    assert [task.index for task in environment.tasks("train")] == list(range(len(goals["train"])))
    texts = Counter((goal.product.asin, goal.text) for goal in goals["all"])
    assert max(texts.values()) == 1


def test_categories_are_the_departments() -> None:
    environment = WebshopEnvironment("generated")
    assert {environment.category(task) for task in environment.tasks("test")} == set(environment.categories)


@pytest.mark.parametrize("task", [Task("webshop", "test", 500), Task("alfworld", "test", 0), Task("webshop", "valid", 0)])
def test_a_task_that_does_not_exist_is_named(task: Task) -> None:
    with pytest.raises(UserError, match=r"webshop/valid|does not exist|choose one of all, train, test"):
        WebshopEnvironment("generated").reset(task)
