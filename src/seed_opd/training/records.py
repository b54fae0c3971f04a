"""What an update leaves in the run folder: its row of metrics, and per response token what both contexts said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seed_opd.hindsight.audit import audit
from seed_opd.methods import Method
from seed_opd.training.ledger import Ledger
from seed_opd.training.scoring import Scored
from seed_opd.training.setup import Parts
from seed_opd.trajectory import Skill, Trajectory


def train_row(
    parts: Parts,
    method: Method,
    trajectories: Sequence[Trajectory],
    skills: Sequence[Skill | None],
    scored: Sequence[Scored],
    learned: Mapping[str, float],
    ledger: Ledger,
) -> dict[str, float]:
    """All numbers of one update, by flat names."""
    responses = sum(item.sample.response_tokens for item in scored)
    ledger.tokens["rollout"] = responses
    ledger.tokens["learning"] = sum(len(item.sample.token_ids) for item in scored)
    ledger.tokens["scoring"] = sum(len(item.sample.token_ids) for item in scored if item.skill is not None)
    row = _episodes(parts, trajectories) | dict(learned)
    if method.divergence.weight:
        row["kl"] = row["loss/kl"] / method.divergence.weight
    if any(skill is not None for skill in skills):
        written = [skill for skill in skills if skill is not None]
        ledger.tokens["analysis"] = sum(len(parts.engine.tokenizer.encode(skill.raw)) for skill in written)
        row |= _skills(written, trajectories) | _gaps(trajectories, scored)
    return row | ledger.row()


def gap_rows(trajectories: Sequence[Trajectory], scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Per trajectory: its advantage, and per step the log-probs of the response tokens under both contexts."""
    rows: list[dict[str, Any]] = [{"advantage": None, "ordinary": [], "skill": None} for _ in trajectories]
    for item in scored:
        row = rows[item.trajectory]
        row["advantage"] = float(item.advantage[0]) if len(item.advantage) else 0.0
        row["ordinary"] += _by_step(item, item.old)
        if item.skill is not None:
            row["skill"] = (row["skill"] or []) + _by_step(item, item.skill)
    return rows


def token_rows(tokenizer: PreTrainedTokenizerBase, trajectories: Sequence[Trajectory]) -> Iterator[list[list[str]]]:
    """Per trajectory and step, the text of each response token."""
    for trajectory in trajectories:
        yield [[str(tokenizer.decode([token])) for token in step.response_ids] for step in trajectory.steps]


def _episodes(parts: Parts, trajectories: Sequence[Trajectory]) -> dict[str, float]:
    steps = [step for t in trajectories for step in t.steps]
    returns: dict[object, set[float]] = {}
    for t in trajectories:
        returns.setdefault(t.task, set()).add(round(t.reward - t.penalty, 9))
    longest = parts.config.context.max_response_tokens
    return {
        "reward/mean": sum(t.reward - t.penalty for t in trajectories) / len(trajectories),
        "success": sum(t.success for t in trajectories) / len(trajectories),
        "episode/steps": len(steps) / len(trajectories),
        "invalid_share": sum(not step.valid for step in steps) / len(steps),
        "cut_share": sum(_is_cut(step.response_ids, longest, parts.context.template.end_id) for step in steps) / len(steps),
        "context/dropped_steps": float(sum(parts.context.dropped_steps(t) for t in trajectories)),
        "equal_groups_share": sum(len(values) == 1 for values in returns.values()) / len(returns),
    }


def _skills(skills: Sequence[Skill], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    row = {"skill/usable_share": sum(skill.usable for skill in skills) / len(skills)}
    row["skill/characters"] = sum(len(skill.skill) for skill in skills) / len(skills)
    return row | {f"skill/{name}": float(count) for name, count in audit(skills, trajectories).counts.items()}


def _gaps(trajectories: Sequence[Trajectory], scored: Sequence[Scored]) -> dict[str, float]:
    gaps = {
        success: [item.gap for item in scored if item.gap is not None and trajectories[item.trajectory].success == success]
        for success in (True, False)
    }
    everything = _joined(gaps[True] + gaps[False])
    means = {
        "gap/mean": everything,
        "gap/mean_success": _joined(gaps[True]),
        "gap/mean_failure": _joined(gaps[False]),
        "gap/absolute": everything.abs(),
        "gate/active_share": (everything > 0).float(),
    }
    return {name: float(values.mean()) for name, values in means.items() if len(values)}


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if parts else torch.empty(0)


def _by_step(item: Scored, values: Tensor) -> list[list[float]]:
    lengths = [end - start for start, end in item.sample.spans]
    return [[round(value, 4) for value in part.tolist()] for part in values.split(lengths)]


def _is_cut(ids: Sequence[int], longest: int, end_id: int) -> bool:
    return len(ids) == longest and ids[-1] != end_id
