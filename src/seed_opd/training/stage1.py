"""Stage 1 from end to end: play, annotate, fine-tune; and how the policy plays before it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from seed_opd.config import Config
from seed_opd.training.analyzers import stage1_analyzer
from seed_opd.training.collect import annotate, collect
from seed_opd.training.evaluate import evaluate
from seed_opd.training.setup import set_up
from seed_opd.training.sft import fine_tune


def run_stage1(config: Config, folder: Path, console: Console) -> None:
    """Fill `base/`, an evaluation of the policy as it comes, and `stage1/` of an experiment, unless they are there."""
    stage1 = folder / "stage1"
    if (stage1 / "model").exists():
        return
    console.rule("The policy before any training")
    parts = set_up(config)
    evaluate(parts, folder / "base", "base")
    console.rule("Stage 1: play, annotate, fine-tune")
    trajectories = collect(parts, stage1)
    statuses = annotate(stage1_analyzer(config, stage1, parts), stage1)
    won = sum(t.success for t in trajectories)
    console.print(f"{len(trajectories)} episodes, {won} successful; skills: {dict(statuses)}")
    fine_tune(parts, stage1, stage1)
