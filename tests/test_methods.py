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
from seed_opd.policy.engine import components

SOURCE = Path(__file__).parents[1] / "src"

DEFAULTS: dict[str, Any] = {
    "trained": True,
    "start": "stage1",
    "actor": {"train": None, "evaluate": ("ordinary",)},
    "skills": None,
    "step_skills": False,
    "advantage": {"unit": "trajectory", "normalise_std": True, "unbiased": False, "steps": None},
    "shaping": None,
    "surrogate": {"weight": 1.0, "clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0, "normalisation": "tokens"},
    "divergence": {"weight": 0.01, "normalisation": "tokens"},
    "distillation": None,
}
GATED: dict[str, Any] = {
    "weight": 0.01,
    "form": "gated",
    "beta": 5.0,
    "tokens": "response",
    "normalisation": "active",
    "baseline": "ordinary",
    "floor": False,
}
SIGNED = {**GATED, "form": "signed", "normalisation": "tokens"}
SHAPED: dict[str, Any] = {"form": "added", "weight": 0.001, "clip": 0.2, "decay_updates": None}
NO_OUTCOME = {**DEFAULTS["surrogate"], "weight": 0.0}
PUBLISHED: dict[str, dict[str, Any]] = {
    "vanilla": {"trained": False},
    "skill_prompt": {"trained": False, "actor": {"train": None, "evaluate": ("library",)}},
    "grpo": {},
    "skill_grpo": {"actor": {"train": "library", "evaluate": ("ordinary", "library")}},
    "gigpo": {"advantage": {**DEFAULTS["advantage"], "steps": {"weight": 1.0, "discount": 0.95}}},
    "opsd": {"skills": "library", "surrogate": NO_OUTCOME, "distillation": GATED},
    "grpo_opsd": {"skills": "library", "distillation": {**GATED, "beta": 0.0}},
    "skill_sd": {"skills": "library", "distillation": {**GATED, "weight": 0.001, "form": "importance_k3"}},
    "rlsd": {"skills": "library", "shaping": {**SHAPED, "form": "modulated", "weight": 0.5, "decay_updates": 100}},
    "sdar": {"skills": "library", "distillation": GATED},
    "opid": {"skills": "external", "step_skills": True, "shaping": SHAPED},
    "seed": {"skills": "analyzer", "distillation": GATED},
    "seed_without_sft": {"start": "base", "skills": "analyzer", "distillation": GATED},
    "seed_frozen": {"skills": "frozen", "distillation": GATED},
    "seed_library": {"skills": "library", "distillation": GATED},
    "seed_tokens": {"skills": "analyzer", "distillation": {**GATED, "normalisation": "tokens"}},
    "seed_signed": {"skills": "analyzer", "distillation": SIGNED},
    "seed_control": {"skills": "analyzer", "distillation": {**SIGNED, "baseline": "control"}},
    "seed_floor": {"skills": "analyzer", "distillation": {**SIGNED, "floor": True}},
}


def test_every_row_has_its_published_settings() -> None:
    rows = {name: row.model_dump(exclude={"name", "summary", "source"}) for name, row in TABLE.items()}
    assert rows == {name: DEFAULTS | changes for name, changes in PUBLISHED.items()}
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
        ("best", {}, "method: 'best' is unknown; choose one of vanilla, skill_prompt, grpo,"),
        ("seed", {"distilation": {"beta": 1}}, "overrides.distilation: {'beta': 1} is not valid for seed: extra inputs"),
        ("seed", {"distillation": {"bta": 1}}, "overrides.distillation.bta: 1 is not valid for seed: extra inputs"),
        ("seed", {"distillation": {"beta": -1}}, "overrides.distillation.beta: -1 is not valid for seed: input should be"),
        (
            "seed",
            {"surrogate": {"normalisation": "mean"}},
            "overrides.surrogate.normalisation: 'mean' is not valid for seed",
        ),
        ("grpo", {"divergence": 3}, "overrides.divergence: 3 is not valid for grpo"),
        ("grpo", {"distillation": {}}, "is not valid for grpo: a teacher needs skills"),
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


def test_the_signed_distillation_by_hand() -> None:
    """From the old log-probs: gaps 0.5, -0.5, 2, 0.4; the signal is tanh(5 gap / 2), ratios are clipped to 0.8 and 1.2."""
    part = loss_of(TABLE["seed_signed"])(live(), SIGNALS)["distillation"]
    signal = [math.tanh(2.5 * gap) for gap in (0.5, -0.5, 2.0, 0.4)]
    ratios = [1.1, 1.5, 1.2, 1.0]  # a negative signal is not clipped above, a positive one is
    expected = sum(-w * a * r for w, a, r in zip([0.0, 0.5, 0.5, 1.0], signal, ratios, strict=True))
    assert float(part.detach()) == pytest.approx(expected, rel=1e-5)


def test_a_control_skill_is_what_the_gap_is_measured_from() -> None:
    same = {**SIGNALS, "control": SIGNALS["skill"]}
    assert float(loss_of(TABLE["seed_control"])(live(), same)["distillation"].detach()) == 0.0
    ordinary = {**SIGNALS, "control": SIGNALS["old"]}
    expected = loss_of(TABLE["seed_signed"])(live(), SIGNALS)["distillation"]
    torch.testing.assert_close(loss_of(TABLE["seed_control"])(live(), ordinary)["distillation"], expected)


def test_skill_sd_by_hand() -> None:
    part = loss_of(TABLE["skill_sd"])(live(), SIGNALS)["distillation"]
    gaps = [x - s for s, x in zip(SIGNALS["skill"].tolist(), live().tolist(), strict=True)]
    terms = [min(r, 10) * (math.exp(-d) - 1 + d) for r, d in zip(RATIOS, gaps, strict=True)]
    assert float(part.detach()) == pytest.approx(sum(w * t for w, t in zip([0, 0.5, 0.5, 1], terms, strict=True)), rel=1e-5)


def test_a_row_has_the_parts_that_it_names_and_no_others() -> None:
    without = resolve("seed", {"divergence": {"weight": 0}, "surrogate": {"weight": 0}})
    sums = [loss_of(row)(live(), SIGNALS) for row in (TABLE["grpo"], TABLE["seed"], without)]
    parts = [set(components(each)[0]) for each in sums]
    assert [set(each) - part for each, part in zip(sums, parts, strict=True)] == [{"clip_share"}, {"clip_share"}, set()]
    assert parts == [{"surrogate", "kl"}, {"surrogate", "kl", "distillation"}, {"distillation"}]


def test_the_reward_alone_asks_for_no_skill() -> None:
    needed = {name: signal for name, signal in SIGNALS.items() if "skill" not in name and "distillation" not in name}
    loss_of(TABLE["grpo"])(live(), needed)
    with pytest.raises(KeyError):
        loss_of(TABLE["seed"])(live(), needed)


ASKING = re.compile(
    r"""\bmethod(?:\.name)?\s*[=!]="""
    rf"""|[=!]=\s*["'](?:{"|".join(TABLE)})["']"""
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
