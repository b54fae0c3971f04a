"""A run is a folder that can be read without us: this module writes it, `report.run_folder` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_opd.config import Config, dump, written
from seed_opd.errors import UserError
from seed_opd.files import write_atomically
from seed_opd.processes import is_main
from seed_opd.trajectory import Skill, Trajectory, read_jsonl, write_jsonl


class RunFolder:
    """`config.yaml`, `metrics.jsonl`, `trajectories/`, `skills/`, `gaps/`, `tokens/`, `evaluations/`, `checkpoints/`."""

    def __init__(self, path: Path, tensorboard: bool = False) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self._board = _board(path) if tensorboard and is_main() else None

    def begin(self, config: Config) -> None:
        """Write the config; refuse a folder that holds another run."""
        existing = self.path / "config.yaml"
        if existing.exists() and not holds_run(self.path, config):
            raise UserError(f"run: {str(self.path)!r} holds a run with another config; choose another name or remove it.")
        write_atomically(existing, dump(config))

    def rewind(self, update: int) -> None:
        """Forget the metrics after an update, which a resumed run will write again."""
        if self.metrics.exists():
            rows = [row for row in _whole_rows(self.metrics) if row["update"] <= update]
            write_atomically(self.metrics, "".join(json.dumps(row) + "\n" for row in rows))

    def log(self, kind: str, update: int, values: Mapping[str, Any]) -> None:
        """Append one line to the metrics stream."""
        if not is_main():
            return
        row = {"update": update, "kind": kind, **values}
        self.path.mkdir(parents=True, exist_ok=True)
        with self.metrics.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row, allow_nan=False) + "\n")
        if self._board is not None:
            prefix = f"{kind}/{values['panel']}" if "panel" in values else kind
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{prefix}/{name}", value, update)

    def write_update(
        self,
        update: int,
        trajectories: Sequence[Trajectory],
        skills: Sequence[Skill | None],
        gaps: Iterable[Mapping[str, Any]],
        tokens: Iterable[Sequence[Sequence[str]]],
    ) -> None:
        """Write what an update played, wrote and scored, one row per trajectory in every file."""
        name = f"update-{update:04d}.jsonl"
        write_jsonl(self.path / "trajectories" / name, trajectories)
        if any(skill is not None for skill in skills):
            write_jsonl(self.path / "skills" / name, [skill or Skill("", "", "empty") for skill in skills])
        _write_rows(self.path / "gaps" / name, gaps)
        _write_rows(self.path / "tokens" / name, ({"tokens": steps} for steps in tokens))

    def write_evaluation(self, label: str, panel: str, trajectories: Sequence[Trajectory]) -> None:
        write_jsonl(self.path / "evaluations" / f"{label}-{panel}.jsonl", trajectories)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def holds_run(folder: Path, config: Config) -> bool:
    """Whether a folder's run has this config, but for how long it is, which may grow."""
    old = written(folder / "config.yaml")
    return old is not None and old.model_copy(update={"updates": config.updates}) == config


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _whole_rows(path: Path) -> Iterable[dict[str, Any]]:
    """The rows of a metrics stream; a last line that a killed run left half-written is dropped."""
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        write_atomically(path, text[: text.rfind("\n") + 1])
    return list(read_jsonl(path))


def _board(path: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            "tensorboard: true needs the package; run pip install 'seed-opd[tensorboard]', or set it false."
        ) from error
    return SummaryWriter(str(path / "tensorboard"))
