from seed_opd.hindsight.audit import audit
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.trajectory import Skill, Trajectory

from .episodes import CLEAN, LOST

RULE = "open cabinet 2 and take mug 1 from it."


def flags(skill: Skill, trajectory: Trajectory = CLEAN) -> tuple[str, ...]:
    return audit([skill], [trajectory]).flags[0]


def test_the_rules_are_clean() -> None:
    result = audit(RulesAnalyzer().analyze([CLEAN, LOST]), [CLEAN, LOST])
    assert result.clean == 2 and not any(result.counts.values())


def test_status_is_the_flag_of_what_is_not_usable() -> None:
    assert flags(Skill("", "", "unparsed")) == ("unparsed",)
    assert flags(Skill("", "string", "placeholder")) == ("placeholder",)


def test_short() -> None:
    assert flags(Skill("", "open cabinet 2 now.")) == ("short",)
    assert flags(Skill("", "open the cabinet 2 now.")) == ()


def test_cut() -> None:
    assert flags(Skill("", "open cabinet 2 and take mu")) == ("cut",)


def test_leak() -> None:
    assert flags(Skill("", "One short rule, for an AGENT about to act: be good.")) == ("leak",)
    assert flags(Skill("", "an agent about to act, be good now.")) == ()


def test_contradiction() -> None:
    assert flags(Skill("The agent failed to find a mug.", RULE)) == ("contradiction",)
    assert flags(Skill("The mug was found and the task was done.", RULE), LOST) == ("contradiction",)
    assert flags(Skill("At first it failed, then the task was completed.", RULE)) == ()
    assert flags(Skill("The task was not completed.", RULE), LOST) == ()
    assert flags(Skill("It ended unsuccessfully.", RULE)) == ("contradiction",)


def test_duplicate() -> None:
    result = audit([Skill("", RULE), Skill("", RULE.upper()), Skill("", "look in the other cabinet first.")], [CLEAN] * 3)
    assert result.flags == ((), ("duplicate",), ())


def test_counts_name_every_flag() -> None:
    counts = audit([Skill("", "go"), Skill("", "go"), Skill("", "", "empty")], [CLEAN] * 3).counts
    assert counts == {
        "unparsed": 0,
        "empty": 1,
        "placeholder": 0,
        "too_long": 0,
        "useless": 0,
        "error": 0,
        "short": 2,
        "cut": 2,
        "leak": 0,
        "contradiction": 0,
        "duplicate": 1,
    }
