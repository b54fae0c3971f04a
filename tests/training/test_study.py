"""Studies: what is run, what is not run again, and that the packaged ones work at their smallest size."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from pydantic import ValidationError

from seed_opd.config import packaged
from seed_opd.errors import UserError
from seed_opd.methods import TABLE
from seed_opd.training.study import Run, Study, _log, load_study, plan

QUICK = """
name: two
recipe: demo
overrides: [updates=2, rollout.tasks=2, rollout.group=2, environment.max_steps=3, stage1.tasks=6, stage1.rollouts=1,
  stage1.epochs=1, stage1.acting_tasks=6, evaluation.tasks=2, evaluation.probe=2, analyzer.max_tokens=60]
methods: [grpo]
variants: {strong: [method=seed, "overrides={distillation: {weight: 0.1}}"]}
seeds: [0]
"""


def run(*arguments, expect=0):
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def command(*arguments):
    return [sys.executable, "-m", "seed_opd.cli", "study", *arguments]


@pytest.mark.parametrize("name", packaged("studies"))
@pytest.mark.parametrize("quick", [False, True])
def test_packaged_studies_name_methods_that_exist(name, quick):
    study = load_study(name, quick)
    runs = plan(study)
    assert runs and {one.method for one in runs} <= set(TABLE) | set(study.variants)
    assert len({one.folder(Path()) for one in runs}) == len(runs)


def test_runs_whose_names_differ_after_a_point_have_logs_of_their_own(tmp_path):
    logs = {_log(Run(name, 0, 1.0, ()), tmp_path) for name in ("weight_0.1", "weight_0.1_rules", "weight_0.5")}
    assert len(logs) == 3


def test_the_main_study_compares_what_the_paper_compares():
    study = load_study("main")
    assert len(study.seeds) == 5 and study.baseline == "grpo"
    assert {"grpo", "skill_grpo", "grpo_opsd", "skill_sd", "rlsd", "sdar", "opid", "seed"} <= set(study.methods)


def test_all_methods_come_before_the_next_seed():
    study = Study(name="s", recipe="demo", methods=["grpo", "seed"], seeds=[3, 4])
    assert [(one.seed, one.method) for one in plan(study)] == [(3, "grpo"), (3, "seed"), (4, "grpo"), (4, "seed")]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"methods": ["best"]}, "method: 'best' is unknown"),
        ({"overrides": ["rollout.tasks=none"]}, "rollout.tasks: 'none' is not valid"),
        ({"baseline": "seed"}, "baseline: 'seed' is not among the study's methods"),
        ({"name": "../s"}, "name"),
        ({"variants": {"a/b": []}}, "variants"),
        ({"fractions": [0.205]}, "fractions"),
        ({"fractions": [0]}, "fractions"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(change, sentence):
    with pytest.raises((UserError, ValidationError), match=sentence):
        plan(Study.model_validate({"name": "s", "recipe": "demo", "methods": ["grpo"], "seeds": [0]} | change))


def test_unknown_fields_and_files_give_a_sentence(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text("name: s\nrecipe: demo\nmethods: [grpo]\nseeds: [0]\nsedes: [1]\n")
    with pytest.raises(UserError, match="sedes: there is no such field"):
        load_study(str(file))
    with pytest.raises(UserError, match=r"there is no file 'none.yaml'"):
        load_study("none.yaml")
    with pytest.raises(UserError, match="'none' is unknown; choose one of"):
        load_study("none")


def test_a_study_that_is_killed_goes_on_and_ends_in_tables(tmp_path):
    file, out = tmp_path / "two.yaml", tmp_path / "out"
    file.write_text(QUICK)
    started = subprocess.Popen(command(str(file), "--out", str(out), "--processes", "1"), start_new_session=True)
    while not (out / "tasks-100" / "seed-0" / "grpo" / "checkpoints" / "progress.json").exists():
        assert started.poll() is None
        time.sleep(0.2)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    text = run(str(file), "--out", str(out))
    assert (out / "tasks-100" / "seed-0" / "strong" / "config.yaml").exists()
    assert "strong" in text and "two.html" in text
    again = run(str(file), "--out", str(out))
    assert "2 of 2 runs are done" in again
    rebuilt = run(str(out / "two.jsonl.xz"), "--out", str(tmp_path / "rebuilt"))
    assert (tmp_path / "rebuilt" / "two.md").read_text() == (out / "two.md").read_text()
    assert "Success, macro average" in rebuilt
    file.write_text(QUICK.replace("weight: 0.1", "weight: 0.2"))
    assert "holds another run; rename the variant 'strong'" in run(str(file), "--out", str(out), expect=2)
    with FileLock(out / ".lock"):
        assert "another one is running" in run(str(file), "--out", str(out), expect=2)
    file.write_text(QUICK.replace("updates=2", "updates=3"))
    assert "holds one of another recipe" in run(str(file), "--out", str(out), expect=2)


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    """Studies of the same recipe and overrides share a folder: what they have in common is done once."""
    return tmp_path_factory.mktemp("studies")


@pytest.mark.parametrize("name", ["main", "sample-efficiency", "ablation"])
def test_the_packaged_studies_run_at_their_smallest_size(name, shared_folder):
    out = shared_folder / load_study(name).recipe
    text = run(name, "--quick", "--out", str(out))
    assert f"{name}-quick.html" in text and "Success, macro average" in text
    assert (out / f"{name}-quick.jsonl.xz").exists()
    if name == "sample-efficiency":
        assert "50% of the tasks" in text
