"""Checkpoints: going on is exact, the last good one always stands, and no more is kept than is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from seed_opd.policy.language_model import LanguageModel
from seed_opd.policy.samples import Sample
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.training.checkpoint import Checkpoints, Progress
from seed_opd.training.sft import likelihood_loss
from toys import random_model


def engine_of(tokenizer: Any, seed: int = 0) -> TorchEngine:
    return TorchEngine(LanguageModel(random_model(len(tokenizer), seed)), tokenizer)


def learn(engine: TorchEngine, steps: range) -> None:
    for number in steps:
        samples = [Sample(tuple(range(number, number + 12)), ((4, 7), (9, 12)))]
        engine.train(samples, [{"weight": torch.full((6,), 1 / 6)}], likelihood_loss)
        engine.step(1e-3)
    engine.publish()


def weights(engine: TorchEngine) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in engine.policy.model.state_dict().items()}


def test_four_steps_are_two_steps_a_checkpoint_and_two_steps(tokenizer, tmp_path):
    straight, first, second = engine_of(tokenizer), engine_of(tokenizer), engine_of(tokenizer, seed=1)
    learn(straight, range(4))
    learn(first, range(2))
    Checkpoints(tmp_path).save(first, Progress(2, 2, 0.5))
    found = Checkpoints(tmp_path).latest()
    assert found == Progress(2, 2, 0.5)
    assert weights(second) != weights(first)
    Checkpoints(tmp_path).restore(second, found)
    learn(second, range(2, 4))
    assert weights(second) == weights(straight)


def test_a_checkpoint_is_a_hugging_face_folder(tokenizer, tmp_path):
    engine, checkpoints = engine_of(tokenizer), Checkpoints(tmp_path)
    checkpoints.save(engine, Progress(3))
    model = AutoModelForCausalLM.from_pretrained(checkpoints.model(3))
    assert torch.equal(model.get_input_embeddings().weight, engine.policy.model.get_input_embeddings().weight)
    assert AutoTokenizer.from_pretrained(checkpoints.model(3)).chat_template == tokenizer.chat_template


class Files:
    """An engine whose weights are a name; it can be killed while it saves its state."""

    def __init__(self) -> None:
        self.killed = False

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)

    def save_state(self, folder: Path) -> None:
        if self.killed:
            raise KeyboardInterrupt
        folder.mkdir(parents=True)


def test_without_a_checkpoint_there_is_none(tmp_path):
    assert Checkpoints(tmp_path / "none").latest() is None


def test_only_the_newest_and_the_best_are_kept(tmp_path):
    engine: Any = Files()
    for progress in (Progress(0, 0, 0.1), Progress(10, 10, 0.4), Progress(20, 10, 0.4), Progress(30, 10, 0.4)):
        Checkpoints(tmp_path).save(engine, progress)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "progress.json",
        "update-0010",
        "update-0030",
        "update-0030-state",
    ]


def test_a_save_that_is_killed_leaves_the_last_good_checkpoint(tmp_path):
    engine: Any = Files()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(engine, Progress(10))
    engine.killed = True
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(engine, Progress(20))
    assert checkpoints.latest() == Progress(10)
    assert checkpoints.model(10).is_dir() and checkpoints.state(10).is_dir()
