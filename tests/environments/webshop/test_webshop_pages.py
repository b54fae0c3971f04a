"""A visit to the corner shop, page by page."""

from __future__ import annotations

from pathlib import Path

import pytest
from corner_shop import MUG, SHIRT, TEA, write
from hypothesis import given, settings
from hypothesis import strategies as st

from seed_opd.environments.webshop import WebshopEnvironment

ITEMS = [MUG, TEA, SHIRT, *({**TEA, "asin": f"B0TEA{n:02d}", "name": f"Tea {n}"} for n in range(11))]


@pytest.fixture()
def environment(tmp_path: Path) -> WebshopEnvironment:
    nouns = {item["asin"]: ["x"] for item in ITEMS}
    made = WebshopEnvironment(str(write(tmp_path / "shop", items_shuffle_1000=ITEMS, title_nouns_1000=nouns)), "human")
    made.reset(made.tasks("all")[0])
    return made


def page(environment: WebshopEnvironment, *actions: str) -> str:
    """The page after some actions, from the task on."""
    text = ""
    for action in actions:
        text = environment.step(action).text
    return text.removeprefix("WebShop [SEP] ").removeprefix(f"Instruction: [SEP] {environment.goals[0].text} [SEP] ")


ITEM = (
    "Back to Search [SEP] < Prev [SEP] color [SEP] navy | white [SEP] red [SEP] size [SEP] small [SEP] "
    "Acme Steel Travel Mug [SEP] Price: $12.5 [SEP] Rating: N.A. [SEP] "
    "Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)
RESULTS = "Back to Search [SEP] Page 1 (Total results: 1) [SEP] Next > [SEP] B0MUG [SEP] Acme Steel Travel Mug [SEP] $12.5"


def test_pages_and_the_way_between_them(environment: WebshopEnvironment) -> None:
    assert page(environment, "search[Mugs]") == RESULTS
    assert page(environment, "click[B0MUG]") == ITEM
    assert page(environment, "click[features]") == "Back to Search [SEP] < Prev [SEP] Leak proof lid [SEP] Dishwasher safe"
    assert page(environment, "click[buy now]").endswith("Dishwasher safe")  # no such button here
    assert page(environment, "click[< prev]") == ITEM
    assert page(environment, "click[description]") == "Back to Search [SEP] < Prev [SEP] Keeps tea hot."
    assert page(environment, "click[< prev]", "click[reviews]") == "Back to Search [SEP] < Prev"
    assert page(environment, "click[< prev]", "click[< prev]") == RESULTS
    assert page(environment, "click[back to search]") == "Search"
    assert page(environment, "click[search]", "click[b0mug]", "think[hm]", "search[]", "click[search", "") == "Search"


def test_results_come_ten_to_a_page_and_there_is_always_a_next_one(environment: WebshopEnvironment) -> None:
    first = page(environment, "search[tea]")
    assert "Page 1 (Total results: 13) [SEP] Next > [SEP]" in first and first.count("B0TEA") == 10
    second = page(environment, "click[next >]")
    assert second.startswith("Back to Search [SEP] Page 2 (Total results: 13) [SEP] < Prev [SEP] Next > [SEP] B0TEA")
    link = environment.visit.page.links[-1]
    assert page(environment, f"click[{link}]", "click[< prev]") == second
    assert page(environment, "click[next >]").endswith("Page 3 (Total results: 13) [SEP] < Prev [SEP] Next >")
    assert page(environment, "click[< prev]", "click[< prev]") == first


def test_the_receipt_tells_what_was_chosen_and_ends_the_episode(environment: WebshopEnvironment) -> None:
    page(environment, "search[mug]", "click[b0mug]", "click[small]", "click[Red]", "click[navy | white]")
    outcome = environment.step("click[Buy Now]")
    assert '[SEP] B0MUG [SEP] options [SEP] {"color": "navy | white", "size": "small"} [SEP]' in outcome.text
    assert outcome.done and not outcome.success and 0 < outcome.score < 1 and outcome.reward == 0
    again = environment.step("search[tea]")
    assert (again.text, again.done, again.reward) == (outcome.text, True, 0)


def test_a_new_look_at_the_results_forgets_what_was_chosen(environment: WebshopEnvironment) -> None:
    page(environment, "search[mug]", "click[b0mug]", "click[small]", "click[< prev]", "click[b0mug]", "click[red]")
    assert '{"color": "red"}' in environment.step("click[buy now]").text


def test_looking_at_details_does_not(environment: WebshopEnvironment) -> None:
    page(environment, "search[mug]", "click[b0mug]", "click[small]", "click[features]", "click[< prev]")
    assert '{"size": "small"}' in environment.step("click[buy now]").text


def test_a_value_of_two_groups_belongs_to_the_last(environment: WebshopEnvironment) -> None:
    page(environment, "search[shirt]", "click[b0shirt]", "click[small]")
    assert environment.visit.page.clickables[-3:] == ("buy now", "small", "x-small")
    assert '{"fit": "small"}' in environment.step("click[buy now]").text


def test_a_search_is_possible_from_every_page(environment: WebshopEnvironment) -> None:
    page(environment, "search[tea]", "click[b0tea]", "click[features]")
    assert page(environment, "search[mugs]") == RESULTS


@given(st.lists(st.text("cliksearhbuynow[]<> m0t2", max_size=20) | st.integers(0, 40), max_size=12))
@settings(max_examples=50, deadline=None)
def test_any_text_is_taken_and_what_can_be_clicked_is_on_the_page(actions: list[str | int]) -> None:
    environment = WebshopEnvironment("generated")
    seen = environment.reset(environment.tasks("test")[0])
    text, offered = seen.text, seen.actions or ()
    for action in actions:
        chosen = offered[action % len(offered)] if isinstance(action, int) else action
        outcome = environment.step("search[shoes]" if chosen == "search[<your query>]" else chosen)
        assert isinstance(action, int) or outcome.text == text or action.startswith("search[")
        text, offered = outcome.text, outcome.actions or ()
        if not environment.visit.page.search_bar:
            assert all(name.removeprefix("click[").rstrip("]") in text.lower() for name in offered)
