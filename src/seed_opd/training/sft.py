"""Stage 1: fine-tune the policy to write hindsight skills.

Trained are the analyses, prompt -> JSON, and nothing else (paper). A small policy forgets how to act meanwhile;
`stage1.replay` mixes its own sampled episodes into every batch to hold it where it was.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seed_opd.errors import UserError
from seed_opd.evaluation.panels import panel_tasks, play_panel, summary
from seed_opd.policy.engine import Engine, Signals
from seed_opd.policy.samples import Sample
from seed_opd.training.analyzers import analyzer_view
from seed_opd.training.pairs import Annotated, pair_sample, read_annotated, split_by_task
from seed_opd.training.progress import Display
from seed_opd.training.run_folder import RunFolder
from seed_opd.training.setup import Parts


@dataclass(frozen=True, slots=True)
class Batch:
    """One optimizer step: analyses, and acting episodes to replay."""

    pairs: Sequence[Sample]
    replay: Sequence[Sample]


def likelihood_loss(log_probs: Tensor, signals: Signals) -> Mapping[str, Tensor]:
    """Weighted negative log-likelihood of the response tokens: (tokens,) -> ()."""
    return {"likelihood": -(log_probs * signals["weight"]).sum()}


def fine_tune(parts: Parts, stage1: Path, folder: Path) -> Path:
    """Train on a stage-1 folder's pairs; writes `metrics.jsonl` and the model of the last epoch, whose path is returned."""
    settings = parts.config.stage1
    training, validation = split_by_task(read_annotated(stage1), settings.validation)
    pairs, too_long = _samples(parts, training)
    held_out, _ = _samples(parts, validation)
    if not pairs:
        raise UserError(
            f"stage1: none of {len(training)} pairs fits in {settings.max_tokens} tokens; raise stage1.max_tokens."
        )
    replay = [sample for row in training for sample in parts.context.samples(row.trajectory)] if settings.replay else []
    batches = _batches(parts, pairs, replay)
    run = RunFolder(folder)
    run.rewind(-1)
    run.log("sft_data", 0, {"pairs": len(pairs), "held_out": len(held_out), "too_long": too_long})
    display = Display(len(batches))
    before = _report_acting(parts, run, display, 0)
    with display:
        for number, batch in enumerate(batches, start=1):
            display.update(number)
            row = _step(parts.engine, batch, settings.learning_rate * _schedule(number, len(batches), settings.warmup))
            run.log("sft", number, row)
            if number == len(batches) or number % max(1, len(batches) // 10) == 0:
                loss = validation_loss(parts.engine, held_out)
                shown = "-" if loss is None else f"{loss:.3f}"
                run.log("sft_validation", number, {"loss": loss} if loss is not None else {})
                display.console.print(f"step {number:4d}/{len(batches)}  training {row['loss/pairs']:.3f}  held out {shown}")
    parts.engine.publish()
    after = _report_acting(parts, run, display, len(batches))
    display.console.print(f"acting success {before:.1%} before, {after:.1%} after stage 1")
    parts.engine.save(folder / "model")
    return folder / "model"


def validation_loss(engine: Engine, samples: Sequence[Sample]) -> float | None:
    """Mean negative log-likelihood per token of held-out analyses, in nats; None without any."""
    if not samples:
        return None
    scores = torch.cat(engine.logprobs(samples))
    return -float(scores.mean())


def _report_acting(parts: Parts, run: RunFolder, display: Display, step: int) -> float:
    """Acting success, micro, on a part of the first panel: stage 1 can cost it."""
    settings = parts.config.evaluation
    tasks = panel_tasks(parts.environment, next(iter(settings.panels.values())), parts.config.stage1.acting_tasks)
    row = summary(
        play_panel(parts.player, tasks, settings.temperature, display.episodes(len(tasks))), parts.environment.categories
    )
    run.log("sft_acting", step, row)
    return float(row["micro"])


def _samples(parts: Parts, rows: Sequence[Annotated]) -> tuple[list[Sample], int]:
    """The pairs that fit, and how many did not even without their middle steps."""
    longest = parts.config.stage1.max_tokens
    answer = parts.config.analyzer.max_tokens
    view = analyzer_view(parts, min(longest - answer, parts.config.analyzer.max_prompt_tokens))
    samples = [pair_sample(parts.context.template, view, row) for row in rows]
    fitting = [sample for sample in samples if len(sample.token_ids) <= longest]
    return fitting, len(samples) - len(fitting)


def _batches(parts: Parts, pairs: Sequence[Sample], replay: Sequence[Sample]) -> list[Batch]:
    settings, rng = parts.config.stage1, random.Random(f"{parts.config.seed}/sft")
    batches = []
    for _ in range(settings.epochs):
        order = rng.sample(range(len(pairs)), len(pairs))
        for start in range(0, len(order), settings.batch):
            chosen = [pairs[index] for index in order[start : start + settings.batch]]
            acting = rng.sample(replay, min(len(replay), round(settings.replay * len(chosen)))) if replay else []
            batches.append(Batch(chosen, acting))
    return batches


def _step(engine: Engine, batch: Batch, learning_rate: float) -> dict[str, float]:
    """One optimizer step; analyses and replay are each a mean over their own tokens."""
    row = {"learning_rate": learning_rate}
    for name, samples in (("pairs", batch.pairs), ("replay", batch.replay)):
        if samples:
            tokens = sum(sample.response_tokens for sample in samples)
            signals: list[Signals] = [{"weight": torch.full((s.response_tokens,), 1.0 / tokens)} for s in samples]
            row[f"loss/{name}"] = engine.train(samples, signals, likelihood_loss)["loss/likelihood"]
    return row | engine.step(learning_rate)


def _schedule(step: int, steps: int, warmup: float) -> float:
    """Linear warm-up, then half a cosine to zero."""
    rising = warmup * steps
    if step <= rising:
        return step / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, steps - rising)))
