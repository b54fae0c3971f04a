"""Skills about shopping episodes: read from their text, short, and of use."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.webshop import WebshopEnvironment
from seed_opd.environments.webshop.expert import SearchingExpert
from seed_opd.errors import UserError
from seed_opd.hindsight.library import Library
from seed_opd.hindsight.probe import score
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.shopping import facts, parse_goal
from seed_opd.hindsight.rules.webshop import named, write
from seed_opd.trajectory import Step, Task, Trajectory

GOAL = "Find me slim fit, machine wash shirts with color: red, and size: small, and price lower than 30.00 dollars"
HEAD = f"Instruction: [SEP] {GOAL} [SEP] Back to Search [SEP] "
SEARCH_PAGE = f"WebShop [SEP] Instruction: [SEP] {GOAL} [SEP] Search"
OFFERS = (
    "B001 [SEP] Acme Slim Fit Machine Wash Shirt [SEP] $20.0 to $25.0 [SEP] B002 [SEP] Acme Slim Fit Shirt [SEP] $19.99 "
    "[SEP] B003 [SEP] Bexley Machine Wash Shirt [SEP] $40.0"
)
RESULTS = f"{HEAD}Page 1 (Total results: 3) [SEP] Next > [SEP] {OFFERS}"
SECOND = f"{HEAD}Page 2 (Total results: 13) [SEP] < Prev [SEP] Next > [SEP] {OFFERS}"
SEARCHED = ("search[slim fit shirts]", RESULTS)


def item(
    title: str = "Acme Slim Fit Machine Wash Shirt", price: str = "$20.0 to $25.0", colors: str = "red [SEP] blue"
) -> str:
    facts = f"{title} [SEP] Price: {price} [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    return f"{HEAD}< Prev [SEP] color [SEP] {colors} [SEP] size [SEP] small [SEP] large [SEP] {facts}"


def receipt(asin: str, options: str, score: float) -> str:
    return (
        f"Thank you for shopping with us! [SEP] Purchased [SEP] asin [SEP] {asin} [SEP] options [SEP] {options} [SEP] "
        f"attrs [SEP] None [SEP] Reward [SEP] Your score (min 0.0, max 1.0) [SEP] {score} [SEP] Reward Details [SEP] None"
    )


def episode(*turns: tuple[str, str], success: bool = False) -> Trajectory:
    """An episode from its (action, page that it led to) pairs."""
    pages = [SEARCH_PAGE, *(page for _, page in turns)]
    steps = tuple(Step(page, "", action, True, 0.0) for page, (action, _) in zip(pages, turns, strict=False))
    return Trajectory(Task("webshop", "train", 0), GOAL, "fashion", steps, success, float(success), pages[-1])


OPENED = (SEARCHED, ("click[B001]", item()))
RED, SMALL, BLUE = (("click[red]", item()), ("click[small]", item()), ("click[blue]", item()))
END = "first search slim fit shirts, next open B001, next choose red, next choose small, then buy it."


def bought(options: str, score: float, asin: str = "B001") -> tuple[str, str]:
    return "click[buy now]", receipt(asin, options, score)


@pytest.mark.parametrize(
    ("trajectory", "skill"),
    [
        (episode(*OPENED, SMALL, RED, bought('{"color": "red", "size": "small"}', 1.0), success=True), END),
        (episode(*OPENED, RED, bought('{"color": "red"}', 0.8)), f"do not buy B001 before you choose small: {END}"),
        (episode(*OPENED, bought("{}", 0.6)), f"do not buy B001 before you choose red: {END}"),
        (episode(*OPENED, BLUE, SMALL, bought('{"color": "blue", "size": "small"}', 0.8)), f"do not choose blue: {END}"),
        (
            episode(SEARCHED, ("click[b003]", item("Bexley Machine Wash Shirt", "$40.0")), bought("{}", 0.4, "B003")),
            f"do not buy B003, it costs more than 30.00: {END}",
        ),
        (
            episode(SEARCHED, ("click[b002]", item("Acme", "$19.99", "blue [SEP] grey")), bought("{}", 0.4, "B002")),
            f"do not buy B002, it has no red: {END}",
        ),
        (
            episode(
                *(SEARCHED, ("click[b002]", item("Acme Slim Fit Shirt", "$19.99")), RED, SMALL),
                bought('{"color": "red", "size": "small"}', 0.8, "B002"),
            ),
            f"do not buy B002, it lacks machine wash: {END}",
        ),
        (
            episode(
                *(SEARCHED, ("click[b002]", item("Acme Slim Fit Shirt", "$19.99"))),
                *(
                    ("click[features]", f"{HEAD}< Prev [SEP] Machine wash."),
                    ("click[< prev]", item("Acme Slim Fit Shirt", "$19.99")),
                ),
                bought("{}", 0.4, "B002"),
            ),
            f"do not buy B002, it lacks what the task asks for: {END}",
        ),
        (episode(*OPENED, RED), f"do not leave B001 unbought: {END}"),
        (
            episode(SEARCHED, SEARCHED, *OPENED, RED),
            f"do not search slim fit shirts more than once: {END}",
        ),
        (
            episode(("click[search]", SEARCH_PAGE)),
            "do not leave before a product is found: first search slim fit machine wash shirts red small, next open another "
            "product, next choose red, next choose small, then buy it.",
        ),
        (
            episode(
                *(SEARCHED, ("click[next >]", SECOND.replace("B00", "B10")), ("click[b101]", item())),
                bought('{"color": "red"}', 1.0, "B101"),
                success=True,
            ),
            "first search slim fit shirts, next turn to page 2, next open B101, next choose red, then buy it.",
        ),
    ],
)
def test_skills(trajectory: Trajectory, skill: str) -> None:
    (written,) = RulesAnalyzer().analyze([trajectory])
    assert written.usable and written.skill == skill
    assert score(written, trajectory)["mean"] == 1.0


def test_goals() -> None:
    goal = parse_goal(GOAL)
    assert (goal.words, goal.options, goal.limit) == (
        "slim fit, machine wash shirts",
        {"color": "red", "size": "small"},
        30.0,
    )
    assert goal.attributes == ("slim fit", "machine wash") and goal.query == "slim fit machine wash shirts red small"
    assert parse_goal("a thing").options == {} and parse_goal("a thing").limit == float("inf")
    with pytest.raises(UserError, match="empty"):
        parse_goal(" ")


def test_a_success_that_the_text_does_not_show_is_an_error() -> None:
    trajectory = episode(("click[buy now]", "?"), success=True)
    assert RulesAnalyzer().analyze([trajectory])[0].status == "error" and named(trajectory) == {}


PAGES = [
    SEARCH_PAGE,
    RESULTS,
    SECOND,
    item(),
    item("x", "none"),
    receipt("B001", "{}", 0.2),
    receipt("B009", "{", 0.0),
    "",
    HEAD,
]
ACTIONS = ["search[a b]", "click[b001]", "click[red]", "click[next >]", "click[buy now]", "", "search[]", "x[y]"]


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(PAGES)), min_size=1, max_size=8), st.booleans())
def test_whatever_the_rules_write_has_the_highest_score(turns: list[tuple[str, str]], success: bool) -> None:
    trajectory = episode(*turns, success=success)
    written = write(trajectory)
    assert written.usable or success
    if written.usable:
        assert score(written, trajectory)["mean"] == 1.0 and len(written.skill) < 250


# ---- whether they are of use


def play(environment: WebshopEnvironment, task: Task, expert: SearchingExpert) -> Trajectory:
    seen = environment.reset(task)
    expert.reset(seen.goal, seen.text)
    text, actions, steps, done, outcome = seen.text, seen.actions or (), [], False, None
    while not done and len(steps) < environment.max_steps:
        action = expert.act(text, actions)
        outcome = environment.step(action)
        steps.append(Step(text, "", action, True, outcome.reward, actions))
        text, actions, done = outcome.text, outcome.actions or (), outcome.done
    assert outcome is not None
    return Trajectory(task, seen.goal, environment.category(task), tuple(steps), outcome.success, outcome.score, text)


def actions_of(skill: str) -> Iterator[str]:
    """A skill's workflow, word for word."""
    _, _, workflow = skill.rpartition("first ")
    for clause in re.split(r", (?:next|then) ", workflow.rstrip(".")):
        verb, _, rest = clause.partition(" ")
        if verb == "turn":
            yield from ["click[next >]"] * (int(rest.split()[-1]) - 1)
        else:
            yield {"search": f"search[{rest}]", "buy": "click[buy now]"}.get(verb, f"click[{rest}]")


def test_workflows_win_and_corrections_help() -> None:
    environment = WebshopEnvironment("generated")
    won: Counter[str | None] = Counter()
    seen: Counter[str | None] = Counter()
    for task in list(environment.tasks("train"))[:200]:
        trajectory = play(environment, task, SearchingExpert(random.Random(task.index), 0.35))
        skill, mistake = write(trajectory).skill, facts(trajectory).mistake
        environment.reset(task)
        outcome = [environment.step(action) for action in actions_of(skill)][-1]
        seen[mistake] += 1
        won[mistake] += outcome.success
    assert {None, "too_early", "wrong_option", "no_such_option", "wrong_product", "not_bought"} <= set(seen)
    assert won[None] == seen[None]
    assert won["too_early"] + won["wrong_option"] >= 0.9 * (seen["too_early"] + seen["wrong_option"])
    failed = seen.total() - seen[None]
    assert (won.total() - won[None]) / failed > 0.6


def test_the_library_has_something_for_every_category() -> None:
    library = Library.of("webshop")
    texts = {library.skill(category) for category in WebshopEnvironment.categories}
    assert len(texts) == 5 and all(len(text) < 400 for text in texts)


def test_the_rules_need_none_of_the_shop_s_packages() -> None:
    code = "import sys; sys.modules.update(bm25s=None, Stemmer=None, rapidfuzz=None); import seed_opd.hindsight.rules"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
