"""Stage 2, the loop: play, read back, score twice, learn.

    for each update:
        draw tasks                                   draw_tasks
        roll out a group of episodes for each        Player.play, no skill in the prompt
        write a skill about each finished episode    the policy itself, the same weights, greedy
        score the sampled tokens twice               ordinary context, skill context
        learn                                        surrogate + KL + gated distillation, one row of the methods table
        log, evaluate, checkpoint

Nothing is added at inference: the skill is only ever in the prompt of the second scoring.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_opd.config import Config, OptimizerConfig
from seed_opd.evaluation.probe_set import ProbeSet
from seed_opd.hindsight.analyzer import Analyzer
from seed_opd.hindsight.library import Library
from seed_opd.methods import Method, loss_of, resolve
from seed_opd.policy.rollout import Assignment
from seed_opd.processes import from_main
from seed_opd.training.analyzers import policy_analyzer, writer_of
from seed_opd.training.checkpoint import Checkpoints, Progress
from seed_opd.training.evaluate import evaluate_panels
from seed_opd.training.guards import check_first_step, check_published, check_update
from seed_opd.training.ledger import Ledger
from seed_opd.training.progress import Display
from seed_opd.training.records import gap_rows, token_rows, train_row
from seed_opd.training.replay import Replay
from seed_opd.training.run_folder import RunFolder
from seed_opd.training.scoring import Scored, score
from seed_opd.training.setup import Parts, draw_tasks, provenance, set_up, train_tasks
from seed_opd.training.signals import signals_of
from seed_opd.trajectory import Skill, Task, Trajectory


@dataclass(slots=True)
class Trainer:
    """Everything that the loop holds between updates."""

    parts: Parts
    method: Method
    analyzer: Analyzer | None
    library: Library | None
    tasks: list[Task]
    folder: RunFolder
    checkpoints: Checkpoints
    replay: Replay
    probe: ProbeSet
    display: Display


def train(config: Config, folder: Path, *, model: Path | None = None, stage1: Path | None = None) -> Progress:
    """Run or resume a run in its folder. `model` is the checkpoint to start from, `stage1` the pairs to replay, if any."""
    trainer = prepare(config, folder, model, stage1)
    progress = from_main(trainer.checkpoints.latest)
    if progress is None:
        trainer.folder.rewind(-1)  # a run killed before its first checkpoint begins again
        trainer.folder.log("start", 0, provenance(trainer.parts, model if trainer.method.start == "stage1" else None))
        progress = _evaluate(trainer, Progress(), label="start")
        trainer.checkpoints.save(trainer.parts.engine, progress)
    else:
        trainer.checkpoints.restore(trainer.parts.engine, progress)
        trainer.folder.rewind(progress.update)
    updates = config.updates if trainer.method.trained else 0
    with trainer.display:
        for update in range(progress.update + 1, updates + 1):
            run_update(trainer, update)
            last = update == updates
            progress = Progress(update, progress.best_update, progress.best_success)
            if last or update % config.evaluation.every == 0:
                progress = _evaluate(trainer, progress)
            if last or update % config.save_every == 0:
                trainer.checkpoints.save(trainer.parts.engine, progress)
    trainer.folder.close()
    return progress


def run_update(trainer: Trainer, update: int) -> None:
    """One round: the paper's algorithm, line by line."""
    config, parts, ledger = trainer.parts.config, trainer.parts, Ledger()
    trainer.display.update(update)

    with ledger.phase("rollout"):
        tasks = draw_tasks(config, trainer.tasks, update)
        trajectories = play(trainer, tasks, update)
    with ledger.phase("analysis"):
        skills = _analyze(trainer, trajectories)
    with ledger.phase("scoring"):
        scored = score(parts.engine, parts.context, parts.environment, trainer.method, trajectories, skills)
    with ledger.phase("learning"):
        learned = _learn(trainer, update, scored)

    row = train_row(parts, trainer.method, trajectories, skills, scored, learned, ledger)
    trainer.folder.log("train", update, row)
    for message in check_update(row):
        trainer.folder.log("warning", update, {"message": message, "count": 1})
        trainer.display.warn(message)
    if update in (1, config.updates) or update % config.keep_trajectories == 0:
        texts = token_rows(parts.engine.tokenizer, trajectories)
        trainer.folder.write_update(update, trajectories, skills, gap_rows(trajectories, scored), texts)
    trainer.display.row(update, row)


def play(trainer: Trainer, tasks: Sequence[Task], update: int) -> list[Trajectory]:
    """Roll out a group of episodes for each task."""
    config = trainer.parts.config
    assignments = [
        Assignment(task, f"{config.seed}/update/{update}/{place}/{member}", _skill_in_prompt(trainer, task))
        for place, task in enumerate(tasks)
        for member in range(config.rollout.group)
    ]
    return trainer.parts.player.play(assignments, config.rollout.temperature, trainer.display.episodes(len(assignments)))


def _skill_in_prompt(trainer: Trainer, task: Task) -> str | None:
    if trainer.method.actor.train is None or trainer.library is None:
        return None
    return trainer.library.skill(trainer.parts.environment.category(task))


def _analyze(trainer: Trainer, trajectories: Sequence[Trajectory]) -> list[Skill | None]:
    if trainer.analyzer is None:
        return [None] * len(trajectories)
    return list(trainer.analyzer.analyze(trajectories))


def _learn(trainer: Trainer, update: int, scored: Sequence[Scored]) -> dict[str, float]:
    """Optimizer steps over mini-batches of whole trajectories; returns means over them."""
    config, engine = trainer.parts.config, trainer.parts.engine
    loss = loss_of(trainer.method)
    rows: list[dict[str, float]] = []
    for number, batch in enumerate(_minibatches(scored, config.optimizer.minibatches, f"{config.seed}/{update}")):
        signals = signals_of(trainer.method, batch, update)
        if number == 0:
            check_first_step(engine, batch, config.model.dtype)
        row = engine.train([item.sample for item in batch], signals, loss)
        row["entropy"] /= sum(item.sample.response_tokens for item in batch)
        row |= trainer.replay.train(engine, update, len({item.trajectory for item in batch}))
        rows.append(row | engine.step(_learning_rate(config.optimizer, update)))
    engine.publish()
    if not config.engine.shares_weights:
        check_published(engine, batch, config.model.dtype, f"{config.seed}/publish/{update}")
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _learning_rate(settings: OptimizerConfig, update: int) -> float:
    """Linear warm-up, then constant."""
    return settings.learning_rate * min(1.0, update / (settings.warmup + 1))


def _minibatches(scored: Sequence[Scored], count: int, seed: str) -> list[list[Scored]]:
    trajectories = sorted({item.trajectory for item in scored})
    random.Random(seed).shuffle(trajectories)
    parts = [set(trajectories[start::count]) for start in range(count)]
    return [[item for item in scored if item.trajectory in part] for part in parts if part]


def _evaluate(trainer: Trainer, progress: Progress, label: str = "update") -> Progress:
    """Play every panel, score the probe set, and remember the best update by the mean of the panels' macro success."""
    parts, ledger = trainer.parts, Ledger()
    macros, *_ = [
        evaluate_panels(parts, trainer.folder, trainer.display, ledger, label, progress.update, library)
        for library in (trainer.library if prompt == "library" else None for prompt in trainer.method.actor.evaluate)
    ]
    if trainer.probe:
        with ledger.phase("probe"):
            probe = trainer.probe.score(policy_analyzer(parts))
        trainer.folder.log("probe", progress.update, probe)
    trainer.folder.log("cost", progress.update, ledger.row())
    success = sum(macros.values()) / len(macros)
    if success > progress.best_success:
        return Progress(progress.update, progress.update, success)
    return progress


def prepare(config: Config, folder: Path, model: Path | None, stage1: Path | None) -> Trainer:
    """Everything that a run needs, from its config; refuses a folder with another run."""
    method = resolve(config.method, config.overrides)
    run = RunFolder(folder, config.tensorboard)
    run.begin(config)
    start = model if method.start == "stage1" else None
    parts = set_up(config, model=start, with_reference=method.divergence.weight > 0)
    return Trainer(
        parts=parts,
        method=method,
        analyzer=writer_of(parts, folder, method.skills, start) if method.skills else None,
        library=Library.of(config.environment.name) if method.actor.reads_library else None,
        tasks=train_tasks(config, parts.environment),
        folder=run,
        checkpoints=Checkpoints(folder / "checkpoints"),
        replay=Replay.load(parts, stage1, config.replay_stage1),
        probe=ProbeSet.load(stage1, config.evaluation.probe),
        display=Display(config.updates),
    )
