"""Step skills by rules: what was handled in a success, the mistake in a failure."""

from __future__ import annotations

from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.rules.critical_steps import MOST, critical_steps

from .episodes import CLEAN, LOST, ROOM, episode


def test_a_success_is_decided_where_the_object_was_handled():
    assert critical_steps(CLEAN) == (
        (3, "take mug 1 from cabinet 2 now."),
        (5, "clean mug 1 with sinkbasin 1 now."),
        (7, "move mug 1 to desk 1 now."),
    )


def test_a_failure_is_decided_by_its_mistake():
    wrong = episode(
        "put a mug in desk.",
        "pick",
        [
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, and a mug 1."),
            ("take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."),
        ],
        success=False,
        room=ROOM,
    )
    assert critical_steps(wrong) == ((1, "do not take apple 1 from countertop 1 now."),)


def test_a_failure_without_a_culprit_has_no_critical_step():
    assert critical_steps(LOST) == ()


def test_the_rules_give_them_with_the_skill_and_not_too_many():
    (skill,) = RulesAnalyzer().analyze([CLEAN])
    assert skill.usable and skill.steps == critical_steps(CLEAN) and len(skill.steps) <= MOST
