"""Plans: counted work, what is missing, advice that makes a run fit, and the two commands that print them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from seed_opd.cli import app
from seed_opd.config import load, packaged
from seed_opd.errors import UserError
from seed_opd.methods import resolve
from seed_opd.training.memory_advice import advise
from seed_opd.training.memory_plan import memory_plan
from seed_opd.training.missing import missing
from seed_opd.training.plan import GIB, Plan, known_shape, load_of, plan, room
from seed_opd.training.workload import workload

BIG = "alfworld-qwen2.5-7b"


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEED_OPD_DATA", raising=False)


def peak(recipe: str, processes: int, *overrides: str) -> int:
    config = load(recipe, overrides)
    shape = known_shape(config)
    return memory_plan(shape, load_of(config, resolve(config.method), shape, processes)).peak


def test_work_by_hand() -> None:
    config = load("alfworld-qwen2.5-3b")
    work = workload(config, resolve("seed"))
    assert work.trajectories == 16 * 8
    assert work.steps == 128 * 30
    assert (work.prompt_tokens, work.response_tokens) == (3840 * 2048, 3840 * 512)
    assert (work.analysis_prompt_tokens, work.analysis_tokens) == (128 * 16384, 128 * 4096)
    assert work.scorings == 2
    assert work.optimizer_steps == 10
    assert (work.evaluations, work.checkpoints) == (31, 16)
    assert (work.stage1_episodes, work.stage1_pairs, work.stage1_steps) == (1440, 162 * 8, 3 * 162)
    grpo = workload(config, resolve("grpo"))
    assert (grpo.analysis_tokens, grpo.scorings) == (0, 1)


def test_a_last_update_that_is_off_the_beat_is_evaluated_and_saved_too() -> None:
    work = workload(load("demo", ["updates=11", "evaluation.every=5", "save_every=4"]), resolve("seed"))
    assert (work.evaluations, work.checkpoints) == (1 + 3, 1 + 3)


@pytest.mark.parametrize("recipe", packaged("recipes"))
def test_every_recipe_can_be_planned_with_nothing_here(recipe: str) -> None:
    resolved = plan(load(recipe))
    assert isinstance(resolved, Plan) and resolved.work.optimizer_steps > 0
    assert resolved.memory is None or resolved.memory.peak > 0


def test_what_is_missing_is_named_with_what_mends_it() -> None:
    found = {one.what: one.mend for one in missing(load(BIG, ["analyzer.api_key_variable=SEED_OPD_NO_SUCH_KEY"]))}
    assert found == {
        "data of alfworld": "SEED_OPD_DATA=FOLDER seed-opd data alfworld",
        "model Qwen/Qwen2.5-7B-Instruct": "hf download Qwen/Qwen2.5-7B-Instruct",
        "remote analyzer": "analyzer.model=NAME analyzer.base_url=URL",
        "key of the remote analyzer": "export SEED_OPD_NO_SUCH_KEY=...",
    }
    assert [one.what for one in missing(load("smollm2"))] == ["model ./smollm2"]
    assert missing(load("demo")) == []


def test_panels_are_counted_where_the_data_is() -> None:
    assert plan(load("demo", ["evaluation.tasks=7"])).panels == {"seen": 7, "unseen": 7}
    assert plan(load("demo")).panels == {"seen": 120, "unseen": 120}
    assert plan(load(BIG)).panels == {"seen": None, "unseen": None}


def test_a_plan_opens_no_data_and_a_wrong_option_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seed_opd.environments.alfworld.games._as_zip", lambda path: pytest.fail("games are indexed"))
    archive = tmp_path / "games.tar.xz"
    archive.write_bytes(b"never opened")
    resolved = plan(load(BIG, [f"environment.options={{games: {archive}}}"]))
    assert "data of alfworld" not in [one.what for one in resolved.missing]
    assert resolved.panels == {"seen": None, "unseen": None}
    with pytest.raises(UserError, match=r"environment\.options\.gamess: 'original' belongs to no option"):
        plan(load(BIG, ["environment.options={gamess: original}"]))


@pytest.mark.parametrize("recipe", ["alfworld-qwen2.5-3b", BIG, "alfworld-qwen3-1.7b"])
def test_the_paper_s_recipes_fit_on_the_paper_s_gpus(recipe: str) -> None:
    assert peak(recipe, 8) <= room(load(recipe), 80)


def test_more_processes_and_recomputing_and_smaller_batches_take_less() -> None:
    whole = peak(BIG, 1)
    assert peak(BIG, 8) < peak(BIG, 2) < whole
    assert peak(BIG, 8, "model.recompute=false") > peak(BIG, 8)
    assert peak("alfworld-qwen2.5-3b", 8, "model.micro_batch_tokens=4096") < peak("alfworld-qwen2.5-3b", 8)


@pytest.mark.parametrize(("gpus", "gibibytes"), [(1, 80.0), (1, 24.0), (4, 24.0)])
def test_advice_when_followed_makes_it_fit(gpus: int, gibibytes: float) -> None:
    config = load(BIG)
    limit = room(config, gibibytes)
    advice = advise(config, known_shape(config), gpus, limit)
    changes = [one.change for one in advice if not one.change.startswith("--gpus")]
    more = next((int(one.change.split()[1]) for one in advice if one.change.startswith("--gpus")), gpus)
    assert peak(BIG, more, *changes) == advice[-1].peak <= limit
    for one in changes:  # none is asked for in vain
        assert peak(BIG, more, *(other for other in changes if other is not one)) > limit


def test_nothing_is_advised_where_it_fits_and_no_endless_search_where_nothing_helps() -> None:
    config = load(BIG)
    assert advise(config, known_shape(config), 8, 80 * GIB) == []
    assert advise(config, known_shape(config), 1, 1)[-1].peak > 1


def test_what_vllm_takes_in_the_same_process_is_no_room_of_ours() -> None:
    shared = load(BIG, ["engine.sampler=vllm", "engine.options={gpu_memory_utilization: 0.4}"])
    assert room(shared, 80) == pytest.approx(40 * GIB) and room(load(BIG), 80) == pytest.approx(72 * GIB)
    shape = known_shape(shared)
    assert "rollout" not in memory_plan(shape, load_of(shared, resolve("seed"), shape, 8)).device


def test_a_server_s_memory_is_not_ours_to_plan() -> None:
    served = load(BIG, ["engine.kind=tinker", "engine.url=http://localhost:8000"])
    with pytest.raises(UserError, match=r"engine.kind: 'tinker' keeps the model on its server"):
        known_shape(served)
    assert plan(served).memory is None


@pytest.mark.parametrize("verb", ["collect", "sft", "train"])
def test_a_dry_run_prints_the_plan_and_leaves_nothing(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [verb, "alfworld-qwen3-1.7b", "--dry-run", "--gpus", "8"])
    assert done.exit_code == 0, done.output
    for text in ("1.72 billion parameters", "3,840", "1,500", "-> hf download Qwen/Qwen3-1.7B\n", "of 8 processes"):
        assert text in done.output
    assert list(tmp_path.iterdir()) == []


def test_the_plan_s_verdict_is_the_exit_code() -> None:
    fits = CliRunner().invoke(app, ["plan", BIG, "--gpus", "8", "--memory", "80"])
    assert fits.exit_code == 0 and "\nFits: " in fits.output
    tight = CliRunner().invoke(app, ["plan", BIG, "--gpus", "1", "--memory", "80"])
    assert tight.exit_code == 1 and "\nDoes not fit: " in tight.output and "model.offload=training" in tight.output
