"""The Tinker engine against a real server, started by run.sh: the conformance suite, and whole updates beside torch.

The server trains LoRA adapters. Everything else being equal, the torch engine with the server's own start of the adapters
must see the same log-probs, losses and gradients at every update, and end with the same adapters.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conformance import Conformance
from safetensors.torch import load_file
from torch import Tensor

from seed_opd.config import load
from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Engine
from seed_opd.policy.loading import Placement, load_policy, load_tokenizer
from seed_opd.policy.tinker_engine import TinkerEngine
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.training import rl
from seed_opd.trajectory import read_jsonl

URL, MODEL = os.environ["SEED_OPD_TINKER_URL"], Path(os.environ["SEED_OPD_TINKER_MODEL"])
ADAPTERS = Adapters(8, 32, "all-linear", seed=0)
SHARED = {"k_proj": "q_proj", "v_proj": "q_proj", "up_proj": "gate_proj"}
"""Layers that read the same input have one matrix A on SkyRL's JAX back-end."""


def connect(**settings: Any) -> TinkerEngine:
    return TinkerEngine.connect(MODEL, url=URL, adapters=ADAPTERS, timeout=600, **settings)


@pytest.fixture(autouse=True)
def freed_slots() -> Iterator[None]:
    """The SDK has no call for it: the server frees adapters only when the client of their session has long been silent."""
    before = {run["training_run_id"] for run in _runs()}
    yield
    for run in _runs():
        if run["training_run_id"] not in before:
            httpx.post(f"{URL}/api/v1/unload_model", json={"model_id": run["training_run_id"]}).raise_for_status()


def _runs() -> list[dict[str, Any]]:
    return list(httpx.get(f"{URL}/api/v1/training_runs", params={"limit": 1000}).json()["training_runs"])


class TestSkyRL(Conformance):
    trains_all_weights = False

    @pytest.fixture()
    def folder(self) -> Path:
        return MODEL

    def make(self, folder: Path) -> Engine:
        return connect()

    def test_going_on_from_a_checkpoint_is_as_if_nothing_had_been(self, engine, folder, tmp_path):
        self.tolerance = 5e-3  # two adapters on one server round differently: as far apart without any checkpoint between
        super().test_going_on_from_a_checkpoint_is_as_if_nothing_had_been(engine, folder, tmp_path)


class Mirrored:
    """The Tinker engine, and the torch engine doing the same beside it; `gaps` are the largest differences by name."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.tinker = connect(**settings)
        self.tinker.save(folder / "start")
        self.torch = torch_engine(folder / "start", **settings)
        self.folder = folder
        self.rows: list[dict[str, float]] = [{}]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tinker, name)

    def logprobs(self, samples: Any, reference: bool = False) -> list[Tensor]:
        mine, other = (engine.logprobs(samples, reference) for engine in (self.tinker, self.torch))
        self.note(
            "log-probs", max([float((one - two).abs().max()) for one, two in zip(mine, other, strict=True)], default=0.0)
        )
        return mine

    def train(self, *arguments: Any) -> dict[str, float]:
        mine, other = (engine.train(*arguments) for engine in (self.tinker, self.torch))
        for name in set(mine) - {"entropy"}:
            self.note(name, abs(mine[name] - other[name]))
        for part in ("surrogate", "distillation"):
            self.note(f"{part} signal", mine.get(f"signal/{part}", 0.0))
        return mine

    def step(self, learning_rate: float) -> dict[str, float]:
        mine, other = (engine.step(learning_rate) for engine in (self.tinker, self.torch))
        self.note("grad_norm, relative", abs(mine["grad_norm/total"] / other["grad_norm/total"] - 1))
        self.note("grad_norm itself", mine["grad_norm/total"])
        self.rows.append({})
        return mine

    def note(self, name: str, value: float) -> None:
        self.rows[-1][name] = max(value, self.rows[-1].get(name, 0.0))

    def adapters_gap(self) -> tuple[float, float]:
        """The largest difference of the adapters as they are now, and the largest way that they went."""
        self.tinker.save(self.folder / "end")
        starts, ends = adapters_of(self.folder / "start"), adapters_of(self.folder / "end")
        mine = dict(self.torch.policy.model.named_parameters())
        gaps = [float((mine[name].detach() - value).abs().max()) for name, value in ends.items() if name in mine]
        return max(gaps), max(float((value - starts[name]).abs().max()) for name, value in ends.items())


def torch_engine(folder: Path, **settings: Any) -> TorchEngine:
    """The torch engine with adapters that begin and share as the server's do."""
    policy = load_policy(MODEL, Placement(), ADAPTERS)
    parameters = dict(policy.model.named_parameters())
    for name, value in adapters_of(folder).items():
        parameters[name].data.copy_(value)
    modules = dict(policy.model.named_modules())
    for name, module in modules.items():
        layer = name.rsplit(".", 1)[-1]
        if layer in SHARED:
            module.lora_A = modules[name.removesuffix(layer) + SHARED[layer]].lora_A
    return TorchEngine(policy, load_tokenizer(MODEL), **(settings | {"max_grad_norm": 1e9}))  # the server does not clip


def adapters_of(folder: Path) -> dict[str, Tensor]:
    """An exported adapter under the names that peft gives inside a model."""
    tensors = load_file(folder / "adapter_model.safetensors")
    return {
        name.removeprefix("base_model.model.").replace(".weight", ".default.weight"): value
        for name, value in tensors.items()
    }


@pytest.mark.parametrize("method", ["grpo", "seed"])
def test_updates_are_the_torch_engines(method, tmp_path, monkeypatch):
    """Three updates on the packaged games, each comparison over all tokens of an update."""
    made: list[Mirrored] = []

    def make_engine(config: Any, model: Any, with_reference: bool) -> Mirrored:
        settings = {"betas": config.optimizer.betas, "weight_decay": config.optimizer.weight_decay}
        made.append(Mirrored(tmp_path, **settings))
        return made[-1]

    monkeypatch.setattr("seed_opd.training.setup.make_engine", make_engine)
    rl.train(load("demo", settings_of(method)), tmp_path / "run")
    (mirrored,) = made
    rows = [row for row in read_jsonl(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "train"]
    print(f"\n{method}: largest differences between the server and torch, by update")
    for update, (gaps, row) in enumerate(zip(mirrored.rows, rows, strict=False), start=1):
        print(f"  {update}:", ", ".join(f"{name} {value:.2g}" for name, value in sorted(gaps.items())))
        print(
            "    ", ", ".join(f"{name} {value:.3g}" for name, value in row.items() if name.startswith(("loss/", "seconds")))
        )
    gap, way = mirrored.adapters_gap()
    print(f"  adapters at the end: {gap:.2g}, and they went {way:.2g}")
    assert len(rows) == 3
    for gaps in mirrored.rows[:3]:
        assert gaps["log-probs"] < 1e-4
        assert all(value < 1e-6 for name, value in gaps.items() if name.startswith(("loss/", "signal/")))
        assert gaps["grad_norm, relative"] < 1e-3
    assert gap < 5e-4 < way
    for part in ("surrogate",) if method == "grpo" else ("surrogate", "distillation"):
        assert max(gaps[f"{part} signal"] for gaps in mirrored.rows[:3]) > 1e-5, f"no {part} to compare"


def test_a_run_from_the_command_line_is_resumed_on_the_server(tmp_path):
    """One update, and later a second one, by another process with a new session."""
    small = ["model.lora.rank=8", "rollout.tasks=2", "environment.train_tasks=2", "environment.max_steps=4"]
    settings = [*settings_of("seed"), *small, "engine.kind=tinker", f"engine.url={URL}"]
    for updates in (1, 2):
        command = [sys.executable, "-m", "seed_opd.cli", "train", "demo", *settings]
        done = subprocess.run(
            [*command, f"updates={updates}", "--out", tmp_path], capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in read_jsonl(tmp_path / "seed" / "metrics.jsonl") if row["kind"] == "train"]
    assert [row["update"] for row in rows] == [1, 2]
    assert rows[0]["kl"] == pytest.approx(0.0, abs=1e-6) and rows[1]["kl"] > 1e-6, "the reference is the start of the run"


def settings_of(method: str) -> list[str]:
    return [
        f"method={method}",
        f"model.path={MODEL}",
        "updates=3",
        "threads=1",
        "environment.train_tasks=6",  # some of them are solved by one of four
        "environment.max_steps=8",
        "rollout.tasks=6",
        "rollout.group=4",
        "optimizer.minibatches=1",
        "evaluation.tasks=1",
        "evaluation.every=3",
        "evaluation.probe=0",
        "analyzer.kind=rules",
        "optimizer.learning_rate=1e-3",
    ]
