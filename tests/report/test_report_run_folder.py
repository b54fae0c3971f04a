import json
from pathlib import Path

import pytest
from synthetic import write_base, write_run

from seed_opd.errors import UserError
from seed_opd.report.run_folder import Run


def add(run: Path, *rows: dict[str, object]) -> None:
    with (run / "metrics.jsonl").open("a") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def test_reads_what_was_written(folder: Path) -> None:
    run = Run.read(folder)
    assert (run.name, run.panels, run.recorded_updates()) == ("SEED", ["seen", "unseen"], [2, 4, 6])
    assert [update for update, _ in run.series("success")] == [1, 2, 3, 4, 5, 6]
    assert [update for update, _ in run.series("probe/score")] == [0, 2, 4, 6]
    assert run.series("no/such") == []
    start, last = run.start("unseen"), run.last("unseen")
    assert start is not None and start.label == "start"
    assert last is not None and last.update == 6 and last.episodes == 140
    assert run.evaluation_file(last).is_file()
    assert run.notes == []


def test_episodes_carry_their_signals(folder: Path) -> None:
    episodes = Run.read(folder).episodes(2)
    assert len(episodes) == 8
    first, lost = episodes[0], episodes[4]
    assert first.skill is not None and first.skill.usable and first.advantage == 0.7
    assert first.tokens is not None and len(first.tokens) == len(first.trajectory.steps)
    assert all(len(step.texts) == len(step.ordinary) == len(step.skill or ()) for step in first.tokens)
    assert lost.skill is not None and not lost.skill.usable
    assert lost.tokens is not None and all(step.skill is None for step in lost.tokens)


def test_costs_are_summed_by_phase(folder: Path) -> None:
    """Six updates of 41,000 rollout tokens; the start and three updates evaluated, 31.5 s each."""
    costs = Run.read(folder).costs
    assert costs["rollout"]["tokens"] == 6 * 41_000
    assert costs["evaluation"]["seconds"] == pytest.approx(4 * 31.5)


def test_a_row_written_again_after_a_resume_counts_once(folder: Path) -> None:
    before = Run.read(folder)
    row = next(row for row in before.train if row["update"] == 4)
    add(folder, {**row, "success": 0.125})
    after = Run.read(folder)
    assert after.costs == before.costs
    assert dict(after.series("success"))[4] == 0.125 and len(after.train) == 6


def test_several_cost_rows_of_one_update_all_count(folder: Path) -> None:
    add(folder, *({"kind": "cost", "update": 6, f"seconds/{phase}": 2.0} for phase in ("saving", "probe")))
    costs = Run.read(folder).costs
    assert costs["saving"]["seconds"] == costs["probe"]["seconds"] == 2.0


def evaluated(update: int, panel: str, macro: float) -> dict[str, object]:
    values = dict.fromkeys(("macro", "macro_low", "macro_high", "micro", "micro_low", "micro_high"), macro)
    return {
        "kind": "evaluation",
        "label": "update",
        "update": update,
        "panel": panel,
        "episodes": 1,
        "categories": {},
    } | values


def test_best_is_best_on_average_over_panels_and_the_earliest_of_equals(folder: Path) -> None:
    """Update 7: (1 + 0.5) / 2 = 0.75; updates 8 and 9: (0.75 + 0.875) / 2 = 0.8125, though neither is best on "seen"."""
    for update, seen, unseen in ((9, 0.75, 0.875), (8, 0.75, 0.875), (7, 1.0, 0.5)):
        add(folder, evaluated(update, "seen", seen), evaluated(update, "unseen", unseen))
    run = Run.read(folder)
    best = run.best("seen")
    assert best is not None and (best.update, best.macro.value) == (8, 0.75)
    assert run.best("no such panel") is None


def test_evaluations_before_the_updates_come_in_their_order(folder: Path) -> None:
    for label in ("mine", "sft", "base"):
        add(folder, evaluated(0, "seen", 0.5) | {"label": label})
    run = Run.read(folder)
    assert [name for name, _ in run.before("seen")] == ["base", "after SFT", "start", "mine"]
    assert [name for name, _ in run.before("unseen")] == ["start"]


def test_the_folder_of_one_evaluation_is_no_trained_run(folder: Path, tmp_path: Path) -> None:
    base = Run.read(write_base(tmp_path / "base"))
    assert Run.read(folder).trained and not base.trained
    assert base.start("seen") is None and base.last("seen") is None
    assert [name for name, _ in base.before("seen")] == ["base"]


def test_warnings_are_counted(folder: Path) -> None:
    add(folder, {"kind": "warning", "update": 4, "message": "responses reached the token limit", "count": 5})
    (most, other) = Run.read(folder).warnings
    assert (most.message, most.count, most.first, most.last) == ("responses reached the token limit", 12, 3, 4)
    assert other.count == 2


def test_a_cut_last_line_is_noted_and_a_bad_one_before_is_refused(folder: Path) -> None:
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"update": 7, "kin')
    run = Run.read(folder)
    assert len(run.notes) == 1 and "cut short" in run.notes[0]
    metrics.write_text("nonsense\n" + whole)
    with pytest.raises(UserError, match=r"metrics\.jsonl:1 is not a metrics row"):
        Run.read(folder)


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"it has no metrics\.jsonl"):
        Run.read(tmp_path)


def test_skills_that_do_not_fit_the_trajectories_are_left_out_and_noted(folder: Path) -> None:
    skills = folder / "skills" / "update-0002.jsonl"
    skills.write_text("".join(skills.read_text().splitlines(keepends=True)[:-1]))
    run = Run.read(folder)
    assert all(episode.skill is None for episode in run.episodes(2))
    assert run.notes == ["skills/update-0002.jsonl has 7 rows for 8 trajectories and is left out."]


def test_not_a_number_is_no_point(folder: Path) -> None:
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"kind": "train", "update": 7, "success": NaN}\n{"kind": "train", "update": 8, "success": null}\n')
    assert max(update for update, _ in Run.read(folder).series("success")) == 6
