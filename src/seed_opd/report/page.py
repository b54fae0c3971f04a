"""Puts the page together: reads the runs, draws, fills the template, writes one file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from seed_opd.files import write_atomically
from seed_opd.report import curves, headline, tables
from seed_opd.report.episodes import browser
from seed_opd.report.run_folder import Run
from seed_opd.report.svg import legend_mark

ASSETS = Path(__file__).parent / "assets"


def build(run: Path, others: Sequence[Path] = ()) -> Path:
    """Write `report.html` into a run's folder, with other runs overlaid in curves and tables, and return its path.

    The folder of a single evaluation among the others, say of the base policy, becomes a line and a column of reference.
    The file loads nothing: style, script and data are inside, and its content policy forbids the network. Raises UserError
    where a folder is not a run's.
    """
    main, *rest = (Run.read(Path(path)) for path in (run, *others))
    runs = _distinct_names([main, *(each for each in rest if each.trained)])
    path = Path(run) / "report.html"
    write_atomically(path, render(runs, [each for each in rest if not each.trained]))
    return path


def render(runs: Sequence[Run], references: Sequence[Run] = ()) -> str:
    """The page for a main run, those it is compared with, and single evaluations for reference."""
    main = runs[0]
    style, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("style.css", "browser.js"))
    episodes = browser(main)
    environment = Environment(
        loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        runs=runs,
        main=main,
        environment=headline.environment(main),
        facts=headline.facts(main),
        settings=headline.settings(main),
        heroes=headline.heroes(runs, references),
        tiles=headline.tiles(main),
        keys=[(legend_mark(series), run.name) for series, run in enumerate(runs)],
        success=curves.success_charts(runs, references),
        groups=curves.chart_groups(runs),
        families=tables.family_tables(runs, references),
        comparisons=tables.comparisons(runs),
        ledgers=tables.ledgers(runs),
        warnings=[(run.name, warning) for run in runs for warning in run.warnings],
        notes=[note for run in runs for note in run.notes],
        browser=episodes,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _distinct_names(runs: Sequence[Run]) -> list[Run]:
    """Add the folder's name where two runs share a method, so that a legend tells them apart."""
    names = [run.name for run in runs]
    return [
        run if names.count(run.name) == 1 else replace(run, name=f"{run.name} ({run.path.resolve().name})") for run in runs
    ]
