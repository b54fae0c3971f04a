"""Replay in stage 2: a few stage-1 pairs beside every update, so that the policy does not forget how to analyse."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from seed_opd.errors import UserError
from seed_opd.policy.engine import Engine, Signals
from seed_opd.policy.samples import Sample
from seed_opd.training.analyzers import analyzer_view
from seed_opd.training.pairs import pair_sample, read_annotated, split_by_task
from seed_opd.training.setup import Parts
from seed_opd.training.sft import likelihood_loss


class Replay:
    """Draws `share` pairs per trajectory of an update; with share 0 it does nothing."""

    def __init__(self, pairs: Sequence[Sample], share: float, seed: int) -> None:
        self.pairs = pairs
        self.share = share
        self.seed = seed

    @classmethod
    def load(cls, parts: Parts, stage1: Path | None, share: float) -> Replay:
        if not share:
            return cls([], 0.0, parts.config.seed)
        if stage1 is None:
            raise UserError(f"replay_stage1: {share} needs the pairs of stage 1; give their folder with --stage1.")
        rows, _ = split_by_task(read_annotated(stage1), parts.config.stage1.validation)
        view = analyzer_view(parts, parts.config.analyzer.max_prompt_tokens)
        return cls([pair_sample(parts.context.template, view, row) for row in rows], share, parts.config.seed)

    def train(self, engine: Engine, update: int, trajectories: int) -> dict[str, float]:
        """Add the gradient of this update's pairs: their mean negative log-likelihood per token."""
        count = round(self.share * trajectories)
        if not count:
            return {}
        drawn = random.Random(f"{self.seed}/replay/{update}").sample(self.pairs, min(count, len(self.pairs)))
        tokens = sum(sample.response_tokens for sample in drawn)
        signals: list[Signals] = [{"weight": torch.full((sample.response_tokens,), 1.0 / tokens)} for sample in drawn]
        row = engine.train(drawn, signals, likelihood_loss)
        return {"loss/replay": row["loss/likelihood"], "signal/replay": row["signal/likelihood"]}
