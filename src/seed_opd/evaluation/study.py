"""The results of a study: means over seeds with their intervals, and differences to a baseline, paired by seed."""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from seed_opd.errors import UserError
from seed_opd.evaluation.compare import TableText
from seed_opd.evaluation.statistics import Interval, mean_over_seeds

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """All rows of a study's metrics, each with the method, seed and share of the tasks that it belongs to."""

    name: str
    baseline: str
    rows: Sequence[Row]

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(row["method"] for row in self.rows))

    @property
    def fractions(self) -> list[float]:
        return sorted({row["fraction"] for row in self.rows})

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(row["panel"] for row in self.rows if row["kind"] == "evaluation"))

    def select(self, kind: str, method: str, fraction: float, panel: str | None = None) -> list[Row]:
        wanted = {"kind": kind, "method": method, "fraction": fraction} | ({"panel": panel} if panel else {})
        return [row for row in self.rows if all(row.get(key) == value for key, value in wanted.items())]

    def series(self, kind: str, method: str, fraction: float, name: str, bins: int) -> list[tuple[float, list[float]]]:
        """A metric over updates, in so many equal stretches: the middle of each, and the mean of each seed."""
        rows = [row for row in self.select(kind, method, fraction) if name in row]
        if not rows:
            return []
        length = max(row["update"] for row in rows) / bins
        found: defaultdict[float, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            place = min(bins - 1, int(max(0.0, row["update"] - 0.5) / length)) if length else 0
            found[(place + 0.5) * length][row["seed"]].append(row[name])
        return [(middle, [fmean(values) for values in seeds.values()]) for middle, seeds in sorted(found.items())]

    def by_seed(self, method: str, fraction: float, panel: str, choose: Callable[[Sequence[Row]], Row]) -> dict[int, float]:
        """Macro success of the evaluation that `choose` picks, by seed."""
        rows = self.select("evaluation", method, fraction, panel)
        seeds = sorted({row["seed"] for row in rows})
        return {seed: choose([row for row in rows if row["seed"] == seed])["macro"] for seed in seeds}


def read_results(path: Path) -> Results:
    """Read the rows that a study left; raises UserError for a file that is none of them."""
    try:
        head, *rows = [json.loads(line) for line in lzma.decompress(path.read_bytes()).decode().splitlines()]
        return Results(head["name"], head["baseline"], rows)
    except (OSError, lzma.LZMAError, ValueError, KeyError) as error:
        raise UserError(f"study: {str(path)!r} cannot be read as a study's rows: {error}.") from error


def first(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: row["update"])


def last(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: row["update"])


def best(rows: Sequence[Row]) -> Row:
    """The best of a run's evaluations: chosen by looking at the panel, so an optimistic number."""
    return max(rows, key=lambda row: row["macro"])


def tables(results: Results) -> list[TableText]:
    """Everything a study says in numbers."""
    whole = max(results.fractions)
    found = [_success(results, whole), _differences(results, whole)]
    found += [_efficiency(results)] if len(results.fractions) > 1 else []
    found += [_trends(results, whole), _signals(results, whole), *_gaps(results, whole), _costs(results, whole)]
    return found


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean with its interval; of a single seed there is none."""
    return mean_over_seeds(values) if len(values) > 1 else Interval(values[0], values[0], values[0])


def shown(values: Sequence[float], sign: bool = False) -> str:
    """A mean in percent, with its 95% interval where there is more than one seed; a share's is cut at 0 and 100%."""
    interval, form = over_seeds(values), "+.1%" if sign else ".1%"
    if len(values) < 2:
        return format(interval.value, form)
    low, high = (interval.low, interval.high) if sign else (max(0.0, interval.low), min(1.0, interval.high))
    return f"{interval.value:{form}} [{low:{form}}, {high:{form}}]"


def _success(results: Results, fraction: float) -> TableText:
    rows = []
    for method in results.methods:
        for panel in results.panels:
            start, end, top = (
                list(results.by_seed(method, fraction, panel, choose).values()) for choose in (first, last, best)
            )
            if end:
                rows.append([method, panel, str(len(end)), f"{fmean(start):.1%}", shown(end), shown(top)])
    header = ["method", "panel", "seeds", "start", "last", "best"]
    return TableText("Success, macro average, mean over seeds with 95% t-interval", header, rows)


def _differences(results: Results, fraction: float) -> TableText:
    rows = []
    for method in (name for name in results.methods if name != results.baseline):
        for panel in results.panels:
            own = results.by_seed(method, fraction, panel, last)
            other = results.by_seed(results.baseline, fraction, panel, last)
            common = sorted(own.keys() & other.keys())
            if common:
                changes = [own[seed] - other[seed] for seed in common]
                wins = sum(change > 0 for change in changes)
                rows.append([method, panel, shown(changes, sign=True), f"{wins} of {len(common)}"])
    title = f"Last evaluation minus {results.baseline}'s, paired by seed"
    return TableText(title, ["method", "panel", "difference", "seeds above"], rows)


def _efficiency(results: Results) -> TableText:
    header = ["method", "panel", *(f"{fraction:.0%} of the tasks" for fraction in results.fractions)]
    rows = []
    for method in results.methods:
        for panel in results.panels:
            cells = [list(results.by_seed(method, fraction, panel, last).values()) for fraction in results.fractions]
            if any(cells):
                rows.append([method, panel, *(shown(values) if values else "-" for values in cells)])
    return TableText("Sample efficiency: success of the last evaluation", header, rows)


_SIGNALS = {
    "usable skills": "skill/usable_share",
    "gap, successes": "gap/mean_success",
    "gap, failures": "gap/mean_failure",
    "gate open": "gate/active_share",
    "equal groups": "equal_groups_share",
    "entropy": "entropy",
    "training success": "success",
}


def _signals(results: Results, fraction: float) -> TableText:
    rows = [
        [method, *(_mean_of(results.select("train", method, fraction), name) for name in _SIGNALS.values())]
        for method in results.methods
    ]
    return TableText("While training, means over all updates and seeds", ["method", *_SIGNALS], rows)


TRENDS = {
    "training success": ("train", "success"),
    "entropy": ("train", "entropy"),
    "KL to the start": ("train", "kl"),
    "usable skills": ("train", "skill/usable_share"),
    "characters of a skill": ("train", "skill/characters"),
    "gap": ("train", "gap/mean"),
    "probe score": ("probe", "score"),
}


def _trends(results: Results, fraction: float) -> TableText:
    rows = []
    for method in results.methods:
        cells = []
        for kind, name in TRENDS.values():
            series = results.series(kind, method, fraction, name, bins=4)
            cells.append(" to ".join(_short(fmean(series[place][1])) for place in (0, -1)) if series else "-")
        rows.append([method, *cells])
    return TableText("From the first to the last quarter of the updates", ["method", *TRENDS], rows)


def _gaps(results: Results, fraction: float) -> list[TableText]:
    """Where the gap is, summed over recorded updates and seeds; no table where no method was scored twice."""
    rows = []
    for method in results.methods:
        found = results.select("gaps", method, fraction)
        above, below = (sum(row[name] for row in found) for name in ("above", "below"))
        for outcome, name in sorted({(row["outcome"], row["class"]) for row in found}):
            own = [row for row in found if (row["outcome"], row["class"]) == (outcome, name)]
            up, down = (sum(row[name] for row in own) for name in ("above", "below"))
            tokens = sum(row["tokens"] for row in own)
            shares = [f"{part / whole:.0%}" if whole else "-" for part, whole in ((up, above), (down, below))]
            rows.append([method, outcome, name, str(tokens), _short((up + down) / tokens), *shares])
    header = ["method", "episode", "token", "tokens", "mean gap", "of all support", "of all objection"]
    title = "Where hindsight speaks: the gap in nats by outcome, tag and certainty (sure: probability above 0.9)"
    return [TableText(title, header, rows)] if rows else []


def _short(value: float) -> str:
    return f"{value:.3g}"


_PHASES = ("rollout", "analysis", "scoring", "learning")


def _costs(results: Results, fraction: float) -> TableText:
    rows = []
    for method in results.methods:
        updates = results.select("train", method, fraction)
        seconds = [sum(row.get(f"seconds/{phase}", 0.0) for phase in _PHASES) for row in updates]
        cells = [_mean_of(updates, f"seconds/{phase}") for phase in _PHASES]
        rows.append([method, *cells, f"{fmean(seconds):.2f}" if seconds else "-"])
    return TableText("Seconds of an update", ["method", *_PHASES, "sum"], rows)


def _mean_of(rows: Sequence[Row], name: str) -> str:
    values = [row[name] for row in rows if name in row]
    return f"{fmean(values):.3f}" if values else "-"
