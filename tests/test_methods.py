"""The methods table: published defaults, what may be changed, and each loss against numbers by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from seed_opd.errors import UserError
from seed_opd.methods import TABLE, Method, loss_of, resolve

SOURCE = Path(__file__).parents[1] / "src"

GRPO = {
    "advantage": {"unit": "trajectory", "normalise_std": True, "unbiased": False},
    "surrogate": {"weight": 1.0, "clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0, "normalisation": "tokens"},
    "divergence": {"weight": 0.01, "normalisation": "tokens"},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "grpo": {**GRPO, "skills": None, "distillation": None},
    "seed": {
        **GRPO,
        "skills": "analyzer",
        "distillation": {"weight": 0.01, "beta": 5.0, "tokens": "response", "normalisation": "active"},
    },
}


def test_every_row_has_its_published_settings() -> None:
    rows = {name: row.model_dump(exclude={"name", "summary", "source"}) for name, row in TABLE.items()}
    assert rows == PUBLISHED
    assert all(name == row.name and row.summary and row.source for name, row in TABLE.items())


def test_a_change_reaches_its_field_and_no_other() -> None:
    row = resolve("seed", {"distillation": {"weight": 0.02}, "advantage": {"unit": "step_sample"}})
    expected = TABLE["seed"].model_dump()
    expected["distillation"]["weight"] = 0.02
    expected["advantage"]["unit"] = "step_sample"
    assert row.model_dump() == expected
    assert resolve("seed") == TABLE["seed"]


@pytest.mark.parametrize(
    ("name", "overrides", "sentence"),
    [
        ("best", {}, "method: 'best' is unknown; choose one of grpo, seed."),
        ("seed", {"distilation": {"beta": 1}}, "overrides.distilation: {'beta': 1} is not valid for seed: extra inputs"),
        ("seed", {"distillation": {"bta": 1}}, "overrides.distillation.bta: 1 is not valid for seed: extra inputs"),
        ("seed", {"distillation": {"beta": -1}}, "overrides.distillation.beta: -1 is not valid for seed: input should be"),
        (
            "seed",
            {"surrogate": {"normalisation": "mean"}},
            "overrides.surrogate.normalisation: 'mean' is not valid for seed",
        ),
        ("grpo", {"divergence": 3}, "overrides.divergence: 3 is not valid for grpo"),
        ("grpo", {"distillation": {}}, "is not valid for grpo: a distillation needs skills"),
    ],
)
def test_what_is_wrong_gives_one_sentence(name: str, overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(name, overrides)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


# Four tokens: the ratio within the clip range; above it with A > 0; above it with A < 0 and beyond the dual clip; unchanged.
RATIOS = [1.1, 1.5, 4.0, 1.0]
ADVANTAGES = [2.0, 1.0, -1.0, -0.5]
OLD = [-1.0, -2.0, -3.0, -0.5]
SIGNALS = {
    "old": torch.tensor(OLD),
    "advantage": torch.tensor(ADVANTAGES),
    "surrogate_weight": torch.tensor([0.25, 0.25, 0.5, 0.0]),
    "reference": torch.tensor([-1.2, -1.0, -1.0, -0.5]),
    "kl_weight": torch.tensor([0.1, 0.2, 0.3, 0.4]),
    "skill": torch.tensor([-0.5, -2.5, -1.0, -0.1]),
    "distillation_weight": torch.tensor([0.0, 0.5, 0.5, 1.0]),
}


def live() -> torch.Tensor:
    log_probs = [old + math.log(ratio) for old, ratio in zip(OLD, RATIOS, strict=True)]
    return torch.tensor(log_probs, requires_grad=True)


def test_the_surrogate_by_hand() -> None:
    part = loss_of(TABLE["grpo"])(live(), SIGNALS)["surrogate"]
    expected = 0.25 * (-2.0 * 1.1) + 0.25 * (-1.0 * 1.2) + 0.5 * 3.0
    assert float(part.detach()) == pytest.approx(expected, rel=1e-5)


def test_the_divergence_by_hand() -> None:
    part = loss_of(TABLE["grpo"])(live(), SIGNALS)["kl"]
    gaps = [r - x for r, x in zip(SIGNALS["reference"].tolist(), live().tolist(), strict=True)]
    expected = sum(w * (math.exp(d) - d - 1) for w, d in zip([0.1, 0.2, 0.3, 0.4], gaps, strict=True))
    assert float(part.detach()) == pytest.approx(expected, rel=1e-5)


def test_the_distillation_and_its_gradient_by_hand() -> None:
    log_probs = live()
    part = loss_of(TABLE["seed"])(log_probs, SIGNALS)["distillation"]
    gaps = [s - x for s, x in zip(SIGNALS["skill"].tolist(), log_probs.tolist(), strict=True)]
    gates = [1 / (1 + math.exp(-5 * gap)) for gap in gaps]
    weights = [0.0, 0.5, 0.5, 1.0]
    assert float(part.detach()) == pytest.approx(
        sum(w * g * d for w, g, d in zip(weights, gates, gaps, strict=True)), rel=1e-5
    )
    part.backward()
    assert log_probs.grad is not None
    assert log_probs.grad.tolist() == pytest.approx([-w * g for w, g in zip(weights, gates, strict=True)], rel=1e-5)


def test_a_row_has_the_parts_that_it_names_and_no_others() -> None:
    without = resolve("seed", {"divergence": {"weight": 0}, "surrogate": {"weight": 0}})
    parts = [set(loss_of(row)(live(), SIGNALS)) for row in (TABLE["grpo"], TABLE["seed"], without)]
    assert parts == [{"surrogate", "kl"}, {"surrogate", "kl", "distillation"}, {"distillation"}]


def test_the_reward_alone_asks_for_no_skill() -> None:
    needed = {name: signal for name, signal in SIGNALS.items() if "skill" not in name and "distillation" not in name}
    loss_of(TABLE["grpo"])(live(), needed)
    with pytest.raises(KeyError):
        loss_of(TABLE["seed"])(live(), needed)


ASKING = re.compile(
    r"""\bmethod(?:\.name)?\s*[=!]="""
    r"""|[=!]=\s*["'](?:grpo|seed)["']"""
    r"""|^(?:if|elif|while|assert|return)\b.*\bmethod(?:\.name)? (?:not )?in\b"""
)


@pytest.mark.parametrize(
    "line", ['if method == "seed":', "elif self.method.name in NAMES:", 'x = name != "grpo"', "if method not in A"]
)
def test_a_question_for_a_methods_name_would_be_found(line: str) -> None:
    assert ASKING.search(line)


def test_nothing_asks_for_a_methods_name() -> None:
    lines = [(file.name, line.strip()) for file in SOURCE.rglob("*.py") for line in file.read_text("utf-8").splitlines()]
    assert [found for found in lines if ASKING.search(found[1])] == []


def test_rows_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        TABLE["seed"].name = "other"
    assert isinstance(TABLE["seed"], Method)
