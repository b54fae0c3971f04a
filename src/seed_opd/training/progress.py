"""What a person sees while a run goes on: a bar over the updates, a bar over the episodes, and one line per result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from seed_opd.processes import is_main


class Display:
    """Progress bars in a terminal, plain lines anywhere else."""

    def __init__(self, updates: int) -> None:
        self.console = Console(stderr=True, highlight=False, quiet=not is_main())
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self._updates = self._bars.add_task("updates", total=updates)
        self._episodes = self._bars.add_task("episodes", total=None, visible=False)

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def update(self, number: int) -> None:
        self._bars.update(self._updates, completed=number - 1)

    def episodes(self, total: int) -> Callable[[int], None]:
        """A bar over this many episodes; call it with the number of newly finished ones."""
        self._bars.reset(self._episodes, total=total, visible=True)
        return lambda finished: self._bars.update(self._episodes, advance=finished)

    def row(self, update: int, row: Mapping[str, float]) -> None:
        seconds = sum(value for name, value in row.items() if name.startswith("seconds/"))
        skill = f"  usable skills {row['skill/usable_share']:4.0%}  gap {row['gap/mean']:+.3f}" if "gap/mean" in row else ""
        self.console.print(
            f"update {update:4d}  success {row['success']:4.0%}  steps {row['episode/steps']:4.1f}"
            f"  entropy {row['entropy']:.2f}{skill}  {seconds:.0f} s",
            soft_wrap=True,
        )

    def evaluation(self, update: int, panel: str, row: Mapping[str, Any]) -> None:
        interval = f"{row['macro_low']:.1%} to {row['macro_high']:.1%}"
        self.console.print(
            f"update {update:4d}  {panel}: macro {row['macro']:.1%} ({interval})  micro {row['micro']:.1%}"
            f"  of {row['episodes']} episodes",
            style="bold",
            soft_wrap=True,
        )

    def warn(self, message: str) -> None:
        self.console.print(f"warning: {message}", style="yellow", markup=False, soft_wrap=True)
