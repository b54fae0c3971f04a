"""The scripted shopper: what it understands, how often it buys the right thing, and how it errs."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.shop_texts import read_offers, understand
from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.expert import SearchingExpert
from seed_opd.errors import UserError
from seed_opd.trajectory import Task


def play(environment: WebshopEnvironment, task: Task, expert: SearchingExpert) -> tuple[bool, list[str], list[str]]:
    """Whether it won, its actions and its thoughts."""
    seen = environment.reset(task)
    expert.reset(seen.goal, seen.text)
    text, admissible, actions, thoughts, success = seen.text, seen.actions or (), [], [], False
    while len(actions) < environment.max_steps:
        actions.append(expert.act(text, admissible))
        thoughts.append(expert.thought)
        outcome = environment.step(actions[-1])
        text, admissible, success = outcome.text, outcome.actions or (), outcome.success
        if outcome.done:
            break
    return success, actions, thoughts


def share_won(environment: WebshopEnvironment, tasks: list[Task], mistakes: float = 0.0) -> float:
    experts = (SearchingExpert(random.Random(task.index), mistakes) for task in tasks)
    return sum(play(environment, task, expert)[0] for task, expert in zip(tasks, experts, strict=True)) / len(tasks)


def test_tasks_are_understood() -> None:
    wish = understand(
        "Find me machine wash men's shirts with cotton heather, classic fit with color: black with white, and fit type: "
        "men, and price lower than 30.00 dollars"
    )
    assert wish.words == "machine wash men's shirts with cotton heather, classic fit"
    assert wish.options == {"color": "black with white", "fit type": "men"} and wish.limit == 30
    assert wish.attributes == ("machine wash", "cotton heather", "classic fit")
    assert wish.query == "machine wash men's shirts with cotton heather classic fit black with white men"


@given(st.text("find me with color: red, and price lower than 3.00 dollars", max_size=60))
def test_any_task_is_understood_somehow(text: str) -> None:
    wish = understand(text)
    assert wish.limit > 0 and all(wish.attributes) and isinstance(wish.query, str)


def test_every_task_of_the_package_is_understood_as_it_was_meant() -> None:
    for goal in WebshopEnvironment("generated").goals:
        wish = understand(goal.text)
        assert (wish.options, wish.limit) == (goal.options, goal.price_limit)
        whole, last = wish.attributes  # where the last attribute ends does not show
        assert whole == goal.attributes[0] and goal.attributes[1].startswith(last)


def test_offers_are_read_from_a_page() -> None:
    environment = WebshopEnvironment("generated")
    environment.reset(environment.tasks("test")[0])
    offers = read_offers(environment.step("search[shoes]").text)
    assert [offer.asin for offer in offers] == list(environment.visit.page.links) and all(
        offer.price > 2 for offer in offers
    )


def test_it_buys_the_right_thing_in_the_packaged_catalogue() -> None:
    environment = WebshopEnvironment("generated")
    assert share_won(environment, list(environment.tasks("test"))[::5]) >= 0.85


@pytest.mark.skipif(
    not (Path(os.environ.get("SEED_OPD_DATA") or "nowhere") / "webshop" / "items_shuffle_1000.json").exists(),
    reason="needs the original products in $SEED_OPD_DATA/webshop",
)
def test_it_buys_the_right_thing_in_the_original_one() -> None:
    environment = WebshopEnvironment("original")
    assert share_won(environment, list(environment.tasks("test"))) >= 0.6


def test_it_buys_earlier_where_episodes_are_cut_earlier() -> None:
    environment = WebshopEnvironment("generated")
    tasks = list(environment.tasks("train"))[:60]
    lengths = {steps: [len(play(environment, task, SearchingExpert(steps=steps))[1]) for task in tasks] for steps in (6, 15)}
    assert max(lengths[15]) > max(lengths[6]) and sum(length <= 6 for length in lengths[6]) == 60


def test_with_mistakes_it_wins_less() -> None:
    environment = WebshopEnvironment("generated")
    tasks = list(environment.tasks("train"))[:60]
    shares = [share_won(environment, tasks, mistakes) for mistakes in (0.0, 0.2, 0.6)]
    assert shares[0] > shares[1] > shares[2]


def test_the_same_seed_plays_the_same_and_says_what_it_does_in_a_few_words() -> None:
    environment = WebshopEnvironment("generated")
    for task in list(environment.tasks("train"))[:30]:
        first = play(environment, task, SearchingExpert(random.Random(3), 0.4))
        assert first == play(environment, task, SearchingExpert(random.Random(3), 0.4))
        assert all(1 < len(thought.split()) <= 4 for thought in first[2])


def test_mistakes_need_a_seed() -> None:
    with pytest.raises(UserError, match="seeded rng"):
        SearchingExpert(mistakes=0.1)


def test_a_search_without_hits_does_not_stop_it() -> None:
    environment = WebshopEnvironment("generated")
    environment.reset(environment.tasks("test")[0])
    expert = SearchingExpert()
    expert.reset("Find me qqq", "")
    text, admissible = "", ("search[<your query>]",)
    for _ in range(5):
        outcome = environment.step(expert.act(text, admissible))
        text, admissible = outcome.text, outcome.actions or ()
    assert not outcome.done
