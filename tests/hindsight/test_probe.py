import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.hindsight.probe import mean_score, score
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.trajectory import Skill, SkillStatus, Trajectory

from .episodes import ANY_TEXT, APPLE, CLEAN, COOL, LOOK, LOST, NOTHING, PICK, PUT_APPLE, TAKE_APPLE, TO_DESK, TWO, episode

PUT = episode(PICK, "pick", [APPLE, TAKE_APPLE, TO_DESK, PUT_APPLE])
SHELF = ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see nothing.")
STUCK = episode(PICK, "pick", [SHELF, *[("go to bed 1", NOTHING)] * 3], success=False)
HALF = episode(TWO, "two", [APPLE, TAKE_APPLE, TO_DESK, PUT_APPLE], success=False)


def parts(skill: Skill, trajectory: Trajectory) -> tuple[float, ...]:
    found = score(skill, trajectory)
    return tuple(found[name] for name in ("object", "place", "tool", "kind"))


@pytest.mark.parametrize("trajectory", [CLEAN, LOST, PUT, HALF, STUCK])
def test_the_rules_agree_with_themselves(trajectory: Trajectory) -> None:
    [skill] = RulesAnalyzer().analyze([trajectory])
    assert score(skill, trajectory)["mean"] == 1.0


@given(ANY_TEXT, ANY_TEXT, st.sampled_from([PICK, COOL, TWO, LOOK]), st.booleans())
def test_whatever_the_rules_write_has_the_highest_score(
    actions: list[str], answers: list[str], goal: str, success: bool
) -> None:
    trajectory = episode(goal, "", list(zip([*actions, "x"], [*answers, ""], strict=False)), success)
    [skill] = RulesAnalyzer().analyze([trajectory])
    assert score(skill, trajectory)["mean"] == (1.0 if skill.usable else 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("take mug 1 from cabinet 2, use sinkbasin 1, go to desk 1", (1.0, 1.0, 1.0, 1.0)),
        ("Take Mug 1 from Cabinet 2.", (1.0, 0.5, 0.0, 1.0)),
        ("take a mug, clean it in a sinkbasin", (0.5, 0.0, 0.5, 1.0)),
        ("take mug 11 from cabinet 21", (0.5, 0.0, 0.0, 1.0)),
        ("do not take mug 1 from cabinet 2", (1.0, 0.5, 0.0, 0.0)),
        ("go on", (0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_parts_after_a_success(text: str, expected: tuple[float, ...]) -> None:
    assert parts(Skill("", text), CLEAN) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("never look for egg in countertop 1, cabinet 1 or desk 1, then use microwave 1", (1.0, 1.0, 1.0, 1.0)),
        ("look for egg in cabinet 1", (1.0, 1 / 3, 0.0, 0.0)),
    ],
)
def test_parts_after_a_failure(text: str, expected: tuple[float, ...]) -> None:
    assert parts(Skill("", text), LOST) == expected


def test_a_family_without_a_tool_has_no_such_part() -> None:
    result = score(Skill("", "take apple 1 from desk 1"), PUT)
    assert "tool" not in result and result["mean"] == pytest.approx((1 + 0.5 + 1) / 3)


@pytest.mark.parametrize("status", ["unparsed", "empty", "placeholder", "too_long", "error"])
def test_what_is_not_usable_scores_zero(status: SkillStatus) -> None:
    assert parts(Skill("", "take mug 1 from cabinet 2", status), CLEAN) == (0.0, 0.0, 0.0, 0.0)


def test_means_are_over_the_episodes_that_have_the_part() -> None:
    means = mean_score([Skill("", "take mug 1"), Skill("", "take apple 1")], [CLEAN, PUT])
    assert means["tool"] == 0.0 and means["object"] == 1.0
    assert means["mean"] == pytest.approx((2 / 4 + 2 / 3) / 2)
    assert "tool" not in mean_score([Skill("", "take apple 1")], [PUT])
