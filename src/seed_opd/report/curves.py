"""Which curves the page draws: tables of titles and metric names, over the charts of `svg`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from seed_opd.evaluation.statistics import Interval
from seed_opd.report.numbers import number, percent
from seed_opd.report.run_folder import Evaluation, Run
from seed_opd.report.svg import Format, Line, Point, legend_mark, line_chart


@dataclass(frozen=True, slots=True)
class Curve:
    """A small chart: metrics with their short names (one stroke each), and how values are written."""

    title: str
    metrics: tuple[tuple[str, str], ...]
    show: Format = number
    from_zero: bool = True


def _one(title: str, metric: str, show: Format = number, from_zero: bool = True) -> Curve:
    return Curve(title, ((metric, ""),), show, from_zero)


GROUPS: tuple[tuple[str, str, tuple[Curve, ...]], ...] = (
    (
        "Acting",
        "What the policy did in the sampled training episodes.",
        (
            _one("Training success", "success", percent),
            _one("Reward, mean", "reward/mean"),
            _one("Episode length, steps", "episode/steps"),
            _one("Invalid actions", "invalid_share", percent),
            _one("Responses cut for length", "cut_share", percent),
            _one("Groups with equal returns", "equal_groups_share", percent),
        ),
    ),
    (
        "Hindsight",
        "What the policy wrote about its episodes, and what it made of its tokens. The probe is a fixed set of episodes.",
        (
            _one("Analysis quality (probe score)", "probe/score", percent),
            Curve(
                "Probe, by part",
                (("probe/object", "object"), ("probe/place", "place"), ("probe/tool", "tool"), ("probe/kind_right", "kind")),
                percent,
            ),
            _one("Usable analyses of the probe", "probe/usable", percent),
            _one("Usable skills", "skill/usable_share", percent),
            _one("Skill length, characters", "skill/characters"),
            Curve(
                "Flagged skills",
                (
                    ("skill/duplicate", "duplicate"),
                    ("skill/leak", "leak"),
                    ("skill/contradiction", "contradiction"),
                    ("skill/short", "short"),
                ),
            ),
            Curve(
                "Mean gap, nats per token",
                (("gap/mean", "all"), ("gap/mean_success", "success"), ("gap/mean_failure", "failure")),
            ),
            _one("Mean absolute gap, nats per token", "gap/absolute"),
            _one("Tokens with gate > 0.5", "gate/active_share", percent),
        ),
    ),
    (
        "Learning",
        "The weighted loss components, and the norm of each one's gradient at the log-probs: who pushes, and how hard.",
        (
            _one("Loss: surrogate", "loss/surrogate"),
            _one("Loss: distillation", "loss/distillation"),
            _one("Loss: KL", "loss/kl"),
            _one("Gradient: surrogate", "signal/surrogate"),
            _one("Gradient: distillation", "signal/distillation"),
            _one("Gradient: KL", "signal/kl"),
            _one("Gradient norm of the weights", "grad_norm/total"),
            _one("Entropy, nats per token", "entropy"),
            _one("Tokens without gradient for the clip", "clip_share", percent),
            _one("Loss: replay of stage 1", "loss/replay"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart with its title and the latest values, one (series, name, value) each."""

    title: str
    picture: Markup
    latest: tuple[tuple[int, str, str], ...] = ()
    strokes: tuple[tuple[Markup, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChartGroup:
    title: str
    text: str
    charts: tuple[Chart, ...]
    missing: tuple[str, ...]


def success_charts(runs: Sequence[Run], references: Sequence[Run]) -> list[Chart]:
    """Success over updates: for each average, macro then micro, one chart per panel, all runs together."""
    panels = runs[0].panels
    charts = [_success_chart(runs, references, panel, average) for average in ("macro", "micro") for panel in panels]
    return [chart for chart in charts if chart is not None]


def chart_groups(runs: Sequence[Run]) -> list[ChartGroup]:
    """The small charts; metrics that no run recorded are named, not drawn."""
    groups = []
    for title, text, curves in GROUPS:
        drawn = [(curve, _small_chart(runs, curve)) for curve in curves]
        charts = tuple(chart for _, chart in drawn if chart is not None)
        groups.append(ChartGroup(title, text, charts, tuple(curve.title for curve, chart in drawn if chart is None)))
    return groups


def _success_chart(runs: Sequence[Run], references: Sequence[Run], panel: str, average: str) -> Chart | None:
    lines = []
    for series, run in enumerate(runs):
        start = run.start(panel)
        updates = [each for each in run.evaluations if each.panel == panel and each.label == "update"]
        evaluations = ([start] if start is not None else []) + updates
        values = [(each.update, _average(each, average)) for each in evaluations]
        if values:
            points = tuple(Point(update, value.value, value.low, value.high) for update, value in values)
            lines.append(Line(run.name, points, series))
    if not lines:
        return None
    before = [pair for run in (*references, runs[0]) for pair in run.before(panel)]
    guides = [(name, _average(each, average).value) for name, each in before if each is not runs[0].start(panel)]
    title = f"Success, {panel} · {average} average"
    picture = line_chart(
        lines,
        label=f"{title}, over updates, with 95% intervals",
        show=percent,
        width=560,
        height=270,
        end_labels=True,
        guides=guides,
    )
    return Chart(title, picture)


def _average(evaluation: Evaluation, average: str) -> Interval:
    return evaluation.macro if average == "macro" else evaluation.micro


def _small_chart(runs: Sequence[Run], curve: Curve) -> Chart | None:
    lines, latest = [], []
    shown = runs if len(curve.metrics) == 1 else runs[:1]  # several strokes of several runs cannot be read
    for series, run in enumerate(shown):
        for dash, (metric, name) in enumerate(curve.metrics):
            values = run.series(metric)
            if not values:
                continue
            title = f"{run.name} {name}".strip()
            lines.append(Line(title, tuple(Point(*value) for value in values), series, dash))
            if dash == 0:
                latest.append((series, run.name, curve.show(values[-1][1])))
    if not lines:
        return None
    strokes = tuple((legend_mark(None, dash), name) for dash, (_, name) in enumerate(curve.metrics) if name)
    picture = line_chart(
        lines, label=f"{curve.title}, over updates", show=curve.show, width=340, height=170, from_zero=curve.from_zero
    )
    return Chart(curve.title, picture, tuple(latest), strokes)
