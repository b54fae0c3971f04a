"""Whole runs on two processes, as a user starts them: the same weights as on one, resumed on another number, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from seed_opd.trajectory import read_jsonl

SMALL = [
    "threads=1",
    "save_every=1",
    "rollout.tasks=2",
    "rollout.group=4",
    "environment.max_steps=5",
    "evaluation.tasks=4",
    "evaluation.every=100",
    "optimizer.warmup=0",
]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "seed_opd.cli"]
ALONE = [sys.executable, "-m", "seed_opd.cli"]


def train(launcher: list[str], out: Path, updates: int) -> None:
    command = [*launcher, "train", "demo", *SMALL, f"updates={updates}", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def rows(out: Path) -> list[dict[str, float]]:
    return [row for row in read_jsonl(out / "seed" / "metrics.jsonl") if row["kind"] == "train"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    train(ALONE, out, 3)
    return out


def check_same(one: Path, two: Path) -> None:
    weights, others = (load_file(out / "seed" / "checkpoints" / "update-0003" / "model.safetensors") for out in (one, two))
    assert weights.keys() == others.keys()
    assert max(float((weights[name] - others[name]).abs().max()) for name in weights) < 1e-5
    assert [row["success"] for row in rows(one)] == [row["success"] for row in rows(two)]


def test_three_updates_on_two_processes_end_where_one_process_does(alone, tmp_path):
    train(TORCHRUN, tmp_path, 3)
    check_same(alone, tmp_path)
    assert [row["update"] for row in rows(tmp_path)] == [1, 2, 3]  # one process writes


def test_a_run_goes_on_with_another_number_of_processes(alone, tmp_path):
    for updates, launcher in enumerate((TORCHRUN, ALONE, TORCHRUN), start=1):
        train(launcher, tmp_path, updates)
    check_same(alone, tmp_path)


def test_a_killed_worker_ends_the_run_with_a_sentence_and_the_last_checkpoint_stands(tmp_path):
    command = [*TORCHRUN, "train", "demo", *SMALL, "updates=100", "--out", str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    checkpoints = tmp_path / "seed" / "checkpoints"
    while not (checkpoints / "progress.json").exists():
        assert run.poll() is None
        time.sleep(0.2)
    os.kill(worker(run.pid, "1"), signal.SIGKILL)
    _, error = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "the run was stopped" in error and "exitcode  : -9" in error and "rank      : 1" in error
    AutoModelForCausalLM.from_pretrained(next(checkpoints.glob("update-*[0-9]")))


def worker(launcher: int, rank: str) -> int:
    """The process id of a worker that torchrun started."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no worker {rank}")
