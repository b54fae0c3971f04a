"""The documents: their code runs, their links lead somewhere, and the settings that they name exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from seed_opd.config import Config, Section
from seed_opd.methods import Method, loss_of
from seed_opd.policy.context import make_context
from seed_opd.policy.language_model import LanguageModel
from seed_opd.policy.rollout import Assignment, Player
from seed_opd.policy.torch_engine import TorchEngine

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
SECTIONS = {name: value for name, value in Config() if isinstance(value, Section)}


@pytest.fixture(scope="module")
def extending(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What docs/extending.md defines."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "extending.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    script = tmp_path_factory.mktemp("docs") / "extending.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    return runpy.run_path(str(script))


def player(extending: dict[str, Any], tokenizer: Any, model: Any, style: Any) -> Player:
    engine = extending["Metered"](TorchEngine(LanguageModel(model), tokenizer))
    context = make_context(style, tokenizer, extending["Doors"](), window=2, max_prompt_tokens=1024)
    limits = {"max_steps": 3, "max_response_tokens": 8, "invalid_penalty": 0.1, "concurrency": 4}
    return Player(engine, context, extending["Doors"], **limits)


@pytest.mark.parametrize("style", ["windowed", "transcript"])
def test_the_environment_is_played_through_the_engine_and_read_by_the_analyzer(extending, tokenizer, model, style):
    playing = player(extending, tokenizer, model, style)
    tasks = extending["Doors"]().tasks("train")[:3]
    trajectories = playing.play([Assignment(task, f"s/{task}") for task in tasks], 1.0)
    assert [t.task for t in trajectories] == list(tasks)
    sampled = sum(len(step.response_ids) for t in trajectories for step in t.steps)
    assert playing.engine.sampled_tokens == sampled > 0
    skills = extending["LastAction"]().analyze(trajectories)
    assert [skill.status for skill in skills] == ["ok" if t.steps[-1].action else "empty" for t in trajectories]


def test_the_environment_replays_from_task_and_actions(extending):
    environment = extending["Doors"]()
    for task in environment.tasks("valid_seen"):
        first, second = ([environment.reset(task), *map(environment.step, extending["DOORS"])] for _ in range(2))
        assert first == second
        assert environment.category(task) in environment.categories


def test_the_method_is_a_row(extending):
    row = extending["row"]
    assert isinstance(row, Method)
    assert callable(loss_of(row))


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_settings_that_are_named_exist(path: Path) -> None:
    named = re.findall(
        r"\b([a-z_0-9]+)\.([a-z_0-9]+)(?:\.([a-z_0-9]+))?\b", "\n".join(re.findall(r"`([^`\n]+)`", path.read_text("utf-8")))
    )
    unknown = [f"{a}.{b}" for a, b, _ in named if a in SECTIONS and b != "py" and b not in type(SECTIONS[a]).model_fields]
    row = Method.model_validate({"name": "", "summary": "", "source": "", "skills": "analyzer", "distillation": {}})
    unknown += [
        f"overrides.{b}.{c}" for a, b, c in named if a == "overrides" and not hasattr(getattr(row, b, None), c or "weight")
    ]
    assert unknown == []
