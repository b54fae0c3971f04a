"""The command line from the packaged policy to a report, at the smallest size; and runs that are killed for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from seed_opd.environments.alfworld.generator import generate
from seed_opd.trajectory import read_jsonl, read_skills, read_trajectories

SMALL = [
    "updates=4",
    "threads=1",
    "save_every=1",
    "rollout.tasks=2",
    "rollout.group=4",
    "environment.max_steps=6",
    "stage1.tasks=6",
    "stage1.rollouts=2",
    "stage1.epochs=1",
    "stage1.acting_tasks=6",
    "stage1.learning_rate=1e-4",
    "evaluation.tasks=6",
    "evaluation.every=2",
    "evaluation.probe=4",
]


def run(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "seed_opd.cli", *arguments]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment after stage 1 and four updates of SEED and of GRPO."""
    out = tmp_path_factory.mktemp("experiment")
    for verb in ("collect", "annotate", "sft"):
        run(verb, "demo", *SMALL, "--out", str(out))
    for method in ("seed", "grpo"):
        run("train", "demo", *SMALL, f"method={method}", "--out", str(out))
    return out


def test_stage_1_leaves_episodes_skills_and_a_model_that_loads(experiment):
    trajectories = read_trajectories(experiment / "stage1" / "trajectories.jsonl")
    skills = read_skills(experiment / "stage1" / "skills.jsonl")
    assert len(trajectories) == len(skills) == 12
    assert len({t.category for t in trajectories}) == 6
    assert all(skill.usable for skill in skills)
    AutoModelForCausalLM.from_pretrained(experiment / "stage1" / "model")
    rows = list(read_jsonl(experiment / "stage1" / "metrics.jsonl"))
    assert {"sft_data", "sft_acting", "sft", "sft_validation"} == {row["kind"] for row in rows}


def test_a_run_is_a_folder_that_can_be_read(experiment):
    folder = experiment / "seed"
    rows = list(read_jsonl(folder / "metrics.jsonl"))
    train = [row for row in rows if row["kind"] == "train"]
    assert [row["update"] for row in train] == [1, 2, 3, 4]
    assert [row["update"] for row in rows if row["kind"] == "evaluation"] == [0, 0, 2, 2, 4, 4]
    assert all(row["skill/usable_share"] == 1.0 for row in train)
    assert all(row[f"signal/{part}"] > 0 for row in train for part in ("kl", "distillation") if row["update"] > 1)
    trajectories = read_trajectories(folder / "trajectories" / "update-0004.jsonl")
    skills = read_skills(folder / "skills" / "update-0004.jsonl")
    gaps = list(read_jsonl(folder / "gaps" / "update-0004.jsonl"))
    tokens = list(read_jsonl(folder / "tokens" / "update-0004.jsonl"))
    assert len(trajectories) == len(skills) == len(gaps) == len(tokens) == 8
    for t, gap, texts in zip(trajectories, gaps, tokens, strict=True):
        lengths = [len(step.response_ids) for step in t.steps]
        assert [len(step) for step in gap["ordinary"]] == [len(step) for step in gap["skill"]] == lengths
        assert [len(step) for step in texts["tokens"]] == lengths
    AutoModelForCausalLM.from_pretrained(folder / "checkpoints" / "update-0004")


def test_both_methods_start_from_the_same_policy_on_the_same_tasks(experiment):
    def first(method):
        return [t.to_json() for t in read_trajectories(experiment / method / "trajectories" / "update-0001.jsonl")]

    assert first("seed") == first("grpo")
    assert not (experiment / "grpo" / "skills").exists()


def test_compare_report_and_evaluate(experiment):
    table = run("compare", str(experiment / "grpo"), str(experiment / "seed")).stdout
    assert "seen" in table and "unseen" in table and "paired by task" in table
    run("report", str(experiment / "seed"), str(experiment / "grpo"))
    assert "<html" in (experiment / "seed" / "report.html").read_text(encoding="utf-8")
    model = str(experiment / "seed" / "checkpoints" / "update-0004")
    run("evaluate", "demo", *SMALL, "--model", model, "--out", str(experiment / "again"), "--label", "last")
    again = {row["panel"]: row for row in read_jsonl(experiment / "again" / "metrics.jsonl")}
    during = [row for row in read_jsonl(experiment / "seed" / "metrics.jsonl") if row["kind"] == "evaluation"]
    for row in during[-2:]:
        assert row["categories"] == again[row["panel"]]["categories"]


def weights(folder: Path, update: int) -> dict[str, bytes]:
    tensors = load_file(folder / "checkpoints" / f"update-{update:04d}" / "model.safetensors")
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def numbers(folder: Path) -> list[dict[str, object]]:
    """The metrics without what a clock says, and without where the model lay."""
    rows = read_jsonl(folder / "metrics.jsonl")
    return [{k: v for k, v in row.items() if k != "model" and not k.startswith("seconds/")} for row in rows]


def test_a_killed_run_goes_on_and_ends_bit_for_bit_as_if_it_had_not_been_killed(experiment, tmp_path):
    (tmp_path / "stage1").symlink_to(experiment / "stage1")
    arguments = command("train", "demo", *SMALL, "method=seed", "--out", str(tmp_path))
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics, deadline = tmp_path / "seed" / "metrics.jsonl", time.monotonic() + 300
    while time.monotonic() < deadline and not (metrics.exists() and '"update": 2, "kind": "train"' in metrics.read_text()):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    run("train", "demo", *SMALL, "method=seed", "--out", str(tmp_path))
    assert weights(tmp_path / "seed", 4) == weights(experiment / "seed", 4)
    assert numbers(tmp_path / "seed") == numbers(experiment / "seed")


def test_two_updates_and_two_more_are_four_updates(experiment, tmp_path):
    (tmp_path / "stage1").symlink_to(experiment / "stage1")
    for updates in (2, 4):
        run("train", "demo", *SMALL, f"updates={updates}", "method=grpo", "--out", str(tmp_path))
    assert weights(tmp_path / "grpo", 4) == weights(experiment / "grpo", 4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "nonesuch"], "recipe: 'nonesuch' is unknown"),
        (["train", "demo", "rollout.tsks=3"], "rollout.tsks: there is no such field"),
        (["train", "demo", "rollout.temperature=0.7"], "rollout.temperature must be 1"),
        (["train", "demo", "method=best"], "method: 'best' is unknown"),
        (["evaluate", "demo", "--model", "/nonexistent"], "model.path: '/nonexistent' cannot be loaded"),
        (["play", "chess"], "environment: 'chess' is unknown"),
        (["play", "alfworld", "--task", "valid_seen"], "--task: 'valid_seen' is not split:index"),
        (["compare", "/nonexistent"], "has no evaluation"),
    ],
)
def test_wrong_input_ends_with_one_sentence_and_exit_code_2(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments, expect=2)
    assert sentence in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_play_speaks_json(experiment):
    done = subprocess.run(
        command("play", "alfworld", "--task", "valid_seen:0", "--json"),
        input="look\nnonsense\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    states = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(states) == 3
    assert set(states[0]) == {"observation", "actions", "reward", "score", "done", "success"}
    assert "Your task is to: " in states[0]["observation"] and "look" in states[0]["actions"]
    assert states[2]["observation"] == "Nothing happens."


def test_replay_action_tokens_step_samples_and_tensorboard(experiment, tmp_path):
    (tmp_path / "stage1").symlink_to(experiment / "stage1")
    changes = "overrides={distillation: {tokens: action}, advantage: {unit: step_sample}}"
    run("train", "demo", *SMALL, "updates=1", "replay_stage1=0.5", "tensorboard=true", changes, "--out", str(tmp_path))
    (row,) = [row for row in read_jsonl(tmp_path / "seed" / "metrics.jsonl") if row["kind"] == "train"]
    assert row["loss/replay"] > 0 and row["signal/distillation"] > 0
    assert list((tmp_path / "seed" / "tensorboard").glob("events*"))


def test_windowed_prompts_train_too(tmp_path):
    windowed = [
        "context.style=windowed",
        "context.max_prompt_tokens=1024",
        "analyzer.kind=rules",
        "evaluation.probe=0",
        "analyzer.view=document",
    ]
    run("train", "demo", *SMALL, *windowed, "updates=1", "environment.max_steps=3", "--out", str(tmp_path))
    (row,) = [row for row in read_jsonl(tmp_path / "seed" / "metrics.jsonl") if row["kind"] == "train"]
    assert row["skill/usable_share"] == 1.0 and row["signal/distillation"] > 0


def test_a_game_file_is_played_to_its_end_and_more_input_is_an_error(tmp_path):
    game = generate(seed=7, scene="kitchen", task="pick_heat_then_place_in_recep")
    file = tmp_path / "game.tw-pddl"
    file.write_text(json.dumps(game), encoding="utf-8")
    lines = "\n".join([*game["walkthrough"], "look"])
    arguments = command("play", "alfworld", "--file", str(file), "--json")
    done = subprocess.run(arguments, input=lines, capture_output=True, text=True, timeout=120)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["done"] and last["success"] and last["reward"] == 10.0 and last["score"] == 1.0
    assert done.returncode == 2 and "the episode is over" in done.stderr
