"""Checkpoints: a Hugging Face folder that `from_pretrained` loads, and beside it what training needs to go on exactly.

Every random draw of a run comes from its seed and the update's number, so no generator state needs saving.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from seed_opd.files import write_atomically
from seed_opd.policy.engine import Engine
from seed_opd.processes import is_main


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: the last whole update, and the best evaluation so far with its update."""

    update: int = 0
    best_update: int = 0
    best_success: float = -1.0


class Checkpoints:
    """`update-0010/` (model), `update-0010-state/` (optimizer) and `progress.json`, which names the newest whole one.

    Only the newest and the best are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def latest(self) -> Progress | None:
        """The newest whole checkpoint, or None."""
        file = self.folder / "progress.json"
        return Progress(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None

    def model(self, update: int) -> Path:
        return self.folder / f"update-{update:04d}"

    def state(self, update: int) -> Path:
        return self.folder / f"update-{update:04d}-state"

    def save(self, engine: Engine, progress: Progress) -> None:
        """Write a checkpoint; it counts only when `progress.json` names it, so that the last good one always stands."""
        engine.save(self.model(progress.update))
        engine.save_state(self.state(progress.update))
        if not is_main():
            return
        write_atomically(self.folder / "progress.json", json.dumps(asdict(progress)))
        self._prune(progress)

    def restore(self, engine: Engine, progress: Progress) -> None:
        engine.load_state(self.model(progress.update), self.state(progress.update))

    def _prune(self, progress: Progress) -> None:
        kept = {self.model(progress.update).name, self.state(progress.update).name, self.model(progress.best_update).name}
        for folder in self.folder.glob("update-*"):
            if folder.name not in kept:
                shutil.rmtree(folder)
