"""Evaluations: play the panels with a policy, and leave episodes and summaries in a run's folder."""

from __future__ import annotations

from pathlib import Path

from seed_opd.evaluation.panels import panel_tasks, play_panel, summary
from seed_opd.hindsight.library import Library
from seed_opd.training.ledger import Ledger
from seed_opd.training.progress import Display
from seed_opd.training.run_folder import RunFolder
from seed_opd.training.setup import Parts


def evaluate(parts: Parts, folder: Path, label: str) -> dict[str, float]:
    """One evaluation of one policy, outside a training run; returns the macro success by panel."""
    run, display = RunFolder(folder), Display(1)
    run.begin(parts.config)
    with display:
        return evaluate_panels(parts, run, display, Ledger(), label, 0)


def evaluate_panels(
    parts: Parts,
    run: RunFolder,
    display: Display,
    ledger: Ledger,
    label: str,
    update: int,
    library: Library | None = None,
) -> dict[str, float]:
    """Play every panel once; returns the macro success by panel. The ledger's phase is "evaluation".

    With a library, its skills are in the prompt, and the panels are named so.
    """
    settings, environment, macros = parts.config.evaluation, parts.environment, {}
    about = {"label": label, "temperature": settings.temperature, "steps": parts.player.max_steps}
    for name, split in settings.panels.items():
        panel = f"{name}+skills" if library else name
        tasks = panel_tasks(environment, split, settings.tasks)
        skills = [library.skill(environment.category(task)) if library else None for task in tasks]
        with ledger.phase("evaluation"):
            trajectories = play_panel(parts.player, tasks, settings.temperature, display.episodes(len(tasks)), skills)
        ledger.tokens["evaluation"] += sum(len(step.response_ids) for t in trajectories for step in t.steps)
        row = summary(trajectories, environment.categories)
        run.write_evaluation(f"{label}-{update:04d}" if label == "update" else label, panel, trajectories)
        run.log("evaluation", update, {"panel": panel, **about, "data_hash": environment.fingerprint, **row})
        display.evaluation(update, panel, row)
        macros[panel] = row["macro"]
    return macros
