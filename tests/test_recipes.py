"""Every packaged recipe runs two updates, its model replaced by a toy of the same architecture.

A toy with random weights only takes invalid actions, and a guard rightly stops such a run. So each toy is first trained on a
few responses to the recipe's own prompts, enough to learn their grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

import seeing
from seed_opd.config import Config, load, packaged
from seed_opd.environments.base import Situation
from seed_opd.policy.pictures import encode
from seed_opd.policy.samples import Sample
from seed_opd.training.plan import GIB, plan
from seed_opd.training.rl import train
from seed_opd.training.setup import Parts, model_path, set_up, train_tasks
from seed_opd.training.sft import likelihood_loss
from seed_opd.training.shapes import config_of
from seed_opd.trajectory import Task, read_jsonl

UNKNOWN = {"./smollm2": "llama"}
"""Architectures of models that a recipe names by a folder which its user makes."""

SMALL = [
    "updates=2",
    "threads=1",
    "save_every=2",
    "rollout.tasks=2",
    "rollout.group=2",
    "environment.max_steps=2",
    "context.max_response_tokens=24",
    "analyzer.max_prompt_tokens=1536",
    "analyzer.max_tokens=64",
    "evaluation.tasks=1",
    "evaluation.every=2",
    "evaluation.probe=0",
    "model.micro_batch_tokens=4096",
    "analyzer.constrained=true",  # a toy cannot write JSON by itself, and without a skill nothing would be distilled
]
DATA = {
    "alfworld": ["environment.options={games: generated}"],
    "webshop": ["environment.options={catalogue: generated}"],
    "search": [
        "environment.options={questions: generated}",
        "environment.train_split=train",
        "evaluation.panels={seen: valid_seen}",
    ],
    "sokoban": [],
    "ezpoints": [],
}
"""By environment: what has it use the data in the package."""

RESPONSES = {
    "alfworld": [
        f"<think>{thought}</think><action>{action}</action>"
        for thought, action in (("see", "look"), ("carry", "inventory"), ("find", "go to desk 1"), ("find", "go to bed 1"))
    ],
    "webshop": [
        f"<think>{thought}</think><action>{action}</action>"
        for thought, action in (
            ("look", "search[shoes]"),
            ("see", "search[red]"),
            ("go", "click[next >]"),
            ("buy", "click[b001]"),
        )
    ],
    "search": [f"<think>look</think><search>{query}</search>" for query in ("who", "when", "where", "what")],
    "sokoban": [f"<think>look</think><action>{move}</action>" for move in ("up", "down", "left", "right")],
    "ezpoints": [f'{{"thoughts": "look", "action": "{token}"}}' for token in ("2", "6", "*", "10")],
}
"""By environment: responses that keep to its grammar, more than one so that a toy keeps some entropy."""


def architecture(config: Config) -> str:
    path = config.model.path
    return UNKNOWN.get(path) or config_of(model_path(path)).model_type


def write_toy(kind: str, folder: Path) -> Path:
    """A model of some 200,000 parameters with random weights, and the packaged policy's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny"))
    if kind == "qwen2_5_vl":
        return seeing.write_model(folder, tokenizer)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": len(tokenizer), "initializer_range": 0.1}
    config = AutoConfig.for_model(kind, **sizes, eos_token_id=tokenizer.eos_token_id, max_position_embeddings=4096)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def show_responses(config: Config, model: Path, folder: Path) -> None:
    """Train a toy on some responses to the first prompts of a few tasks."""
    fast = config.model_copy(update={"model": config.model.model_copy(update={"dtype": "float32", "recompute": False})})
    parts = set_up(fast, model=model)
    responses = RESPONSES[config.environment.name]
    tasks = train_tasks(config, parts.environment)[: len(responses)]
    samples = [answered(parts, task, response) for task, response in zip(tasks, responses, strict=True)]
    for _ in range(15):
        tokens = sum(sample.response_tokens for sample in samples)
        signals = [{"weight": torch.full((sample.response_tokens,), 1 / tokens)} for sample in samples]
        parts.engine.train(samples, signals, likelihood_loss)
        parts.engine.step(learning_rate=1e-2)
    parts.engine.publish()
    parts.engine.save(folder)


def answered(parts: Parts, task: Task, response: str) -> Sample:
    """The first step of a task with this response."""
    observation = parts.environment.reset(task)
    image = encode(parts.environment.picture()) if parts.environment.seen else None
    prompt = parts.context.prompt(Situation(observation.goal, (), observation.text, observation.actions, image))
    ids = [*parts.engine.tokenizer.encode(response, add_special_tokens=False), parts.context.template.end_id]
    return Sample((*prompt, *ids), ((len(prompt), len(prompt) + len(ids)),))


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Config], Path]:
    """The toy for a config; recipes of one architecture and one style of context share it."""
    made: dict[tuple[str, ...], Path] = {}

    def toy(config: Config) -> Path:
        kind = (architecture(config), config.environment.name, config.context.style)
        if kind not in made:
            folder = tmp_path_factory.mktemp("toy")
            write_toy(kind[0], folder / "random")
            show_responses(config, folder / "random", folder / "shown")
            made[kind] = folder / "shown"
        return made[kind]

    return toy


@pytest.mark.parametrize("recipe", packaged("recipes"))
def test_a_recipe_runs_two_updates(recipe: str, toys: Callable[[Config], Path], tmp_path: Path) -> None:
    config = load(recipe, [*SMALL, *DATA[load(recipe).environment.name]])
    toy = toys(config)
    assert train(config, tmp_path / "run", model=toy).update == 2
    rows = [row for row in read_jsonl(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "train"]
    assert [row["update"] for row in rows] == [1, 2]
    assert all(row["skill/usable_share"] > 0 and row["signal/distillation"] > 0 for row in rows)
    last = tmp_path / "run" / "checkpoints" / "update-0002"
    assert json.loads((last / "config.json").read_text())["model_type"] == architecture(config)
    before, after = load_file(toy / "model.safetensors"), load_file(last / "model.safetensors")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)


STATED = re.compile(r"(\d+) GPUs? ([\d.]+) GiB")


@pytest.mark.parametrize("recipe", packaged("recipes"))
def test_the_memory_that_a_recipe_states_is_what_its_plan_says(recipe: str) -> None:
    text = (resources.files("seed_opd") / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    stated = {int(gpus): float(size) for gpus, size in STATED.findall(text)}
    plans = {gpus: plan(load(recipe), processes=gpus).memory for gpus in stated}
    assert stated == {gpus: memory and round(memory.peak / GIB, 1) for gpus, memory in plans.items()}
