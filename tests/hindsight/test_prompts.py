import pytest

from seed_opd.hindsight.prompts import analyzer_prompt, instructions, question
from seed_opd.hindsight.schema import SKILL, SUMMARY
from seed_opd.trajectory import Outcome

from .episodes import CLEAN, LOST


@pytest.mark.parametrize("outcome", ["success", "failure", "unknown"])
def test_instructions_are_short(outcome: Outcome) -> None:
    assert len(instructions(outcome).split()) <= 110


def test_order_of_the_parts() -> None:
    prompt = analyzer_prompt(CLEAN)
    parts = [
        "JSON only",
        f"1. {SUMMARY}",
        f"2. {SKILL}",
        "one short rule",
        '"string"',
        f"Task: {CLEAN.goal}",
        "Outcome: success",
        "Step 0",
    ]
    positions = [prompt.text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert (prompt.dropped_steps, prompt.fits) == (0, True)


def test_the_skill_asked_for_depends_on_the_outcome() -> None:
    assert "workflow" in analyzer_prompt(CLEAN).text
    assert "avoid" in analyzer_prompt(LOST).text and "workflow" not in analyzer_prompt(LOST).text
    unknown = analyzer_prompt(CLEAN, outcome="unknown").text
    assert "Outcome: unknown" in unknown and "success" not in unknown


def test_a_long_episode_keeps_instructions_task_first_and_last_step() -> None:
    whole = analyzer_prompt(CLEAN)
    cut = analyzer_prompt(CLEAN, len(whole.text) - 1)
    assert cut.dropped_steps == 1 and cut.fits
    least = analyzer_prompt(CLEAN, 10)
    assert least.dropped_steps == len(CLEAN.steps) - 2 and not least.fits
    for part in (instructions("success"), f"Task: {CLEAN.goal}", "Step 0\n", "Step 7\n", "(6 steps left out)"):
        assert part in least.text


def test_length_is_measured_in_the_callers_tokens() -> None:
    words = len(analyzer_prompt(CLEAN).text.split())
    assert analyzer_prompt(CLEAN, words, lambda text: len(text.split())).dropped_steps == 0
    assert analyzer_prompt(CLEAN, words - 1, lambda text: len(text.split())).dropped_steps == 1


def test_the_question_after_an_episode_asks_the_same_of_it() -> None:
    order = "Analyse the finished episode below."
    for trajectory in (CLEAN, LOST):
        asked = instructions(trajectory.outcome).replace(order, "The episode is over, analyse it.")
        assert question(trajectory) == f"{asked}\n\nTask: {trajectory.goal}\nOutcome: {trajectory.outcome}"


def test_a_general_skill_is_asked_for_in_one_more_sentence() -> None:
    wanted = "no names of single things or places."
    assert wanted in analyzer_prompt(CLEAN, general=True).text and wanted not in analyzer_prompt(CLEAN).text
    assert wanted in question(CLEAN, general=True) and wanted not in question(CLEAN)
