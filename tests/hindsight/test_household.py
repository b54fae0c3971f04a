import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.errors import UserError
from seed_opd.hindsight.rules.household import Find, Goal, Mistake, Site, facts, parse_goal, plan_facts
from seed_opd.trajectory import Trajectory

from .episodes import (
    ANY_TEXT,
    APPLE,
    CABINET,
    CLEAN,
    COOL,
    LAMP,
    LOOK,
    LOST,
    NOTHING,
    PICK,
    PUT_APPLE,
    TAKE_APPLE,
    TO_DESK,
    TWO,
    episode,
)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("put a book in sofa.", Goal("pick", "book", "sofa")),
        ("put some book on sidetable.", Goal("pick", "book", "sidetable")),
        ("put a clean mug in desk.", Goal("clean", "mug", "desk")),
        ("clean some mug and put it in desk.", Goal("clean", "mug", "desk")),
        ("put a hot egg in fridge.", Goal("heat", "egg", "fridge")),
        ("heat some egg and put it in fridge.", Goal("heat", "egg", "fridge")),
        ("put a cool pan in shelf.", Goal("cool", "pan", "shelf")),
        ("cool some pan and put it in shelf.", Goal("cool", "pan", "shelf")),
        ("put two cd in drawer.", Goal("two", "cd", "drawer")),
        ("find two cd and put them in drawer.", Goal("two", "cd", "drawer")),
        ("look at bowl under the desklamp.", Goal("look", "bowl", "desklamp")),
        ("Your task is to: examine the bowl with the desklamp.", Goal("look", "bowl", "desklamp")),
    ],
)
def test_goals(text: str, goal: Goal) -> None:
    assert parse_goal(text) == goal


def test_another_goal_is_refused() -> None:
    with pytest.raises(UserError, match="buy a red shirt"):
        parse_goal("buy a red shirt")


def test_facts_of_a_success() -> None:
    read = facts(CLEAN)
    assert read.finds == (Find("mug 1", Site("cabinet 2", "cabinet 2", opened=True)),)
    assert read.tool == Site("sinkbasin 1", "sinkbasin 1")
    assert read.destination == Site("desk 1", "desk 1")
    assert read.mistake is None


def test_a_plan_gives_the_same_facts() -> None:
    planned = plan_facts(CLEAN.goal, [step.action for step in CLEAN.steps])
    read = facts(CLEAN)
    assert (planned.finds, planned.tool, planned.destination) == (read.finds, read.tool, read.destination)


def test_neighbours_that_share_a_place() -> None:
    plan = ["go to cart 1", "take apple 1 from cart 1", "go to drawer 17", "open drawer 11", "move apple 1 to drawer 11"]
    assert plan_facts("put a apple in drawer.", plan).destination == Site("drawer 11", "drawer 17", opened=True)


def test_the_lamp_is_where_it_was_used() -> None:
    read = facts(episode(LOOK, "look", [APPLE, TAKE_APPLE, LAMP, ("use desklamp 1", "You turn on the desklamp 1.")]))
    assert read.tool == Site("desklamp 1", "shelf 1") and read.destination is None


def test_two_objects_in_the_order_in_which_they_were_brought() -> None:
    more = [
        ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a apple 3."),
        ("take apple 3 from shelf 1", "You pick up the apple 3 from the shelf 1."),
        TO_DESK,
        ("move apple 3 to desk 1", "You move the apple 3 to the desk 1."),
    ]
    read = facts(episode(TWO, "two", [APPLE, TAKE_APPLE, TO_DESK, PUT_APPLE, *more]))
    assert [(find.name, find.at.name) for find in read.finds] == [("apple 1", "countertop 1"), ("apple 3", "shelf 1")]


def test_older_wording() -> None:
    turns = [APPLE, TAKE_APPLE, TO_DESK, ("put apple 1 in/on desk 1", "You put the apple 1 in/on the desk 1.")]
    assert facts(episode(PICK, "pick", turns)).destination == Site("desk 1", "desk 1")


def test_searched_and_unsearched_places() -> None:
    read = facts(LOST)
    assert read.searched == ("countertop 1", "cabinet 1", "desk 1")
    assert read.unsearched == ("cabinet 2", "fridge 1", "microwave 1", "sinkbasin 1", "shelf 1")
    closed = facts(episode("put a egg in desk.", "pick", [APPLE, CABINET], success=False))
    assert closed.unsearched[0] == "cabinet 2" and closed.searched == ("countertop 1",)


def test_a_later_look_does_not_empty_the_room() -> None:
    look = ("look", "You are in the middle of a room. Looking quickly around you, you see nothing.")
    assert len(facts(episode(PICK, "pick", [look], success=False)).unsearched) == 8


def test_where_an_object_was_seen_is_known_after_a_failure() -> None:
    read = facts(episode(COOL, "cool", [APPLE, TO_DESK], success=False))
    assert read.finds == (Find("apple 1", Site("countertop 1", "countertop 1")),)
    assert (read.tool, read.destination) == (Site("fridge 1", "fridge 1"), Site("desk 1", "desk 1"))


@pytest.mark.parametrize(
    ("goal", "turns", "mistake", "culprit"),
    [
        (PICK, [("go to desk 1", NOTHING)] * 3 + [APPLE], "repeated", "go to desk 1"),
        (PICK, [TO_DESK, CABINET], "not_found", ""),
        ("put a plate in desk.", [APPLE, TAKE_APPLE], "not_found", ""),
        (PICK, [APPLE, CABINET, ("take apple 2 from cabinet 2", NOTHING)], "closed", "cabinet 2"),
        (
            PICK,
            [APPLE, ("take knife 2 from countertop 1", "You pick up the knife 2 from the countertop 1.")],
            "wrong_object",
            "knife 2",
        ),
        (PICK, [APPLE, TO_DESK], "not_taken", ""),
        (COOL, [APPLE, TAKE_APPLE], "tool_skipped", ""),
        (COOL, [APPLE, TAKE_APPLE, TO_DESK, PUT_APPLE], "wrong_order", ""),
        (
            COOL,
            [APPLE, TAKE_APPLE, ("cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1.")],
            "not_placed",
            "",
        ),
        (
            COOL,
            [APPLE, TAKE_APPLE, ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1.")],
            "tool_skipped",
            "",
        ),
        (LOOK, [APPLE, TAKE_APPLE, LAMP], "tool_skipped", ""),
        (LOOK, [LAMP, ("use desklamp 1", "You turn on the desklamp 1."), APPLE, TAKE_APPLE], "wrong_order", ""),
        (
            PICK,
            [APPLE, TAKE_APPLE, ("move apple 1 to shelf 1", "You move the apple 1 to the shelf 1.")],
            "wrong_place",
            "shelf 1",
        ),
        (PICK, [APPLE, TAKE_APPLE, TO_DESK], "not_placed", ""),
        (TWO, [APPLE, TAKE_APPLE, TO_DESK, PUT_APPLE], "one_missing", ""),
        (
            PICK,
            [
                APPLE,
                TAKE_APPLE,
                TO_DESK,
                PUT_APPLE,
                ("take apple 1 from desk 1", "You pick up the apple 1 from the desk 1."),
            ],
            "not_placed",
            "",
        ),
        (
            PICK,
            [APPLE, CABINET, ("open cabinet 2", "You open the cabinet 2."), ("take apple 2 from cabinet 2", NOTHING)],
            "not_taken",
            "",
        ),
    ],
)
def test_mistakes(goal: str, turns: list[tuple[str, str]], mistake: Mistake, culprit: str) -> None:
    read = facts(episode(goal, "", turns, success=False))
    assert (read.mistake, read.culprit) == (mistake, culprit)


def test_looking_at_the_same_again_is_useless_too() -> None:
    read = facts(episode(PICK, "pick", [APPLE, *[("look", "You are facing the countertop 1.")] * 5], success=False))
    assert (read.mistake, read.culprit) == ("repeated", "look")


@given(ANY_TEXT, ANY_TEXT, st.sampled_from([PICK, COOL, TWO, LOOK]), st.booleans())
def test_any_text_has_facts(actions: list[str], answers: list[str], goal: str, success: bool) -> None:
    trajectory: Trajectory = episode(goal, "", list(zip([*actions, "x"], [*answers, ""], strict=False)), success)
    assert (facts(trajectory).mistake is None) == success
