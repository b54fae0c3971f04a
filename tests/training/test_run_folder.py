"""A run's folder: one config, one stream of metrics, and what a killed run may leave in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seed_opd.config import Config, load
from seed_opd.errors import UserError
from seed_opd.training.run_folder import RunFolder
from seed_opd.trajectory import Skill, Step, Task, Trajectory, read_jsonl, read_skills, read_trajectories


def test_the_config_is_written_and_loads_again(tmp_path: Path) -> None:
    config = Config(name="one", seed=3)
    RunFolder(tmp_path).begin(config)
    assert load(str(tmp_path / "config.yaml")) == config


def test_a_folder_keeps_to_one_run_which_may_grow(tmp_path: Path) -> None:
    RunFolder(tmp_path).begin(Config(updates=10))
    RunFolder(tmp_path).begin(Config(updates=20))
    assert load(str(tmp_path / "config.yaml")).updates == 20
    with pytest.raises(UserError, match="holds a run with another config; choose another name or remove it"):
        RunFolder(tmp_path).begin(Config(updates=20, seed=1))
    assert load(str(tmp_path / "config.yaml")).seed == 0


def test_rewinding_forgets_what_a_resumed_run_will_write_again(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.rewind(0)
    for update in (0, 1, 2, 3):
        run.log("train", update, {"loss": 0.5 * update})
    with run.metrics.open("a") as stream:
        stream.write('{"update": 4, "ki')
    run.rewind(2)
    assert [row["update"] for row in read_jsonl(run.metrics)] == [0, 1, 2]
    run.rewind(-1)
    assert run.metrics.read_text() == ""


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        RunFolder(tmp_path).log("train", 1, {"loss": float("nan")})


def test_an_update_leaves_one_row_per_trajectory_in_every_file(tmp_path: Path) -> None:
    step = Step("seen", "said", "done", True, 1.0)
    made = [Trajectory(Task("plain", "train", index), "goal", "all", (step,), True, 1.0) for index in range(2)]
    run = RunFolder(tmp_path)
    run.write_update(7, made, [Skill("s", "k"), None], [{"advantage": 1.0}] * 2, [[["a"]], [["b"]]])
    assert read_trajectories(tmp_path / "trajectories" / "update-0007.jsonl") == made
    assert [skill.status for skill in read_skills(tmp_path / "skills" / "update-0007.jsonl")] == ["ok", "empty"]
    assert [row["tokens"] for row in read_jsonl(tmp_path / "tokens" / "update-0007.jsonl")] == [[["a"]], [["b"]]]
    run.write_update(8, made, [None, None], [{}, {}], [[], []])
    assert not (tmp_path / "skills" / "update-0008.jsonl").exists()


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = RunFolder(tmp_path, tensorboard=True)
    run.log("train", 1, {"loss": 0.5, "note": "text"})
    run.log("evaluation", 2, {"panel": "seen", "macro": 0.25})
    run.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["evaluation/seen/macro", "train/loss"]
    assert [(event.step, event.value) for event in events.Scalars("evaluation/seen/macro")] == [(2, 0.25)]
