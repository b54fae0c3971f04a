"""One evaluation of one policy, outside a training run."""

from __future__ import annotations

from pathlib import Path

from seed_opd.evaluation.panels import panel_tasks, play_panel, summary
from seed_opd.training.progress import Display
from seed_opd.training.run_folder import RunFolder
from seed_opd.training.setup import Parts


def evaluate(parts: Parts, folder: Path, label: str) -> dict[str, float]:
    """Play every panel, write episodes and summaries to the folder; returns the macro success by panel."""
    settings, run, display = parts.config.evaluation, RunFolder(folder), Display(1)
    run.begin(parts.config)
    macros = {}
    with display:
        for panel, split in settings.panels.items():
            tasks = panel_tasks(parts.environment, split, settings.tasks)
            trajectories = play_panel(parts.player, tasks, settings.temperature, display.episodes(len(tasks)))
            row = summary(trajectories, parts.environment.categories)
            run.write_evaluation(label, panel, trajectories)
            shown = {"panel": panel, "label": label, "temperature": settings.temperature, "steps": parts.player.max_steps}
            run.log("evaluation", 0, shown | row)
            display.evaluation(0, panel, row)
            macros[panel] = row["macro"]
    return macros
