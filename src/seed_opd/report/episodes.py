"""The episode browser's data: a few episodes of a few updates, small enough to travel inside the page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from seed_opd.objectives.distillation import BETA
from seed_opd.report.run_folder import Episode, Run, Tokens, evaluation_episodes, flatten

MAX_BYTES = 3_500_000  # of all embedded episodes together; the page stays below 5 MB
PER_SOURCE = (8, 4, 2, 1)  # episodes of each source, the first number that fits


@dataclass(frozen=True, slots=True)
class Browser:
    """The embedded JSON, and what it holds and leaves out, in words."""

    data: Markup
    text: str
    sources: int


def browser(run: Run) -> Browser:
    """Pack the first, middle and last recorded update, and the first and last evaluation of each panel."""
    updates, files = run.recorded_updates(), run.evaluation_files()
    chosen = sorted({updates[0], updates[len(updates) // 2], updates[-1]}) if updates else []
    sources = [(str(update), f"Update {update} · training", run.episodes(update)) for update in chosen]
    names = _chosen_evaluations(run)
    sources += [(f.stem, f"{f.stem} · evaluation", evaluation_episodes(f)) for f in files if f.stem in names]
    for limit in PER_SOURCE:
        packed = [_source(*source, limit) for source in sources]
        data = embed({"beta": _beta(run), "shown": str(chosen[-1]) if chosen else None, "sources": packed})
        if len(data.encode()) <= MAX_BYTES:
            break
    held = sum(len(source["episodes"]) for source in packed)
    text = (
        f"{held} episodes are embedded: up to {limit} of each of {len(chosen)} of {len(updates)} recorded updates "
        f"and of {len(names)} of {len(files)} evaluations, successes and failures mixed. "
        "The others are in the run's folder, under trajectories/ and evaluations/."
    )
    return Browser(data, text, len(sources))


def embed(value: Any) -> Markup:
    """JSON that is safe inside a script element: no character can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def mixed(episodes: Sequence[Episode], limit: int) -> list[Episode]:
    """At most `limit` episodes in order, half successes and half failures as far as there are both."""
    won = [each for each in episodes if each.trajectory.success]
    lost = [each for each in episodes if not each.trajectory.success]
    of_won = min(len(won), max(limit - limit // 2, limit - len(lost)))
    chosen = _spread(won, of_won) + _spread(lost, min(len(lost), limit - of_won))
    return sorted(chosen, key=lambda each: each.index)


def _spread(episodes: Sequence[Episode], count: int) -> list[Episode]:
    return [episodes[index * len(episodes) // count] for index in range(count)]


def _chosen_evaluations(run: Run) -> set[str]:
    """File names of the base, the start and the last evaluation of each panel."""
    wanted = [each for panel in run.panels for each in (run.evaluation(panel, "base"), run.start(panel), run.last(panel))]
    stems = {run.evaluation_file(each).stem for each in wanted if each is not None}
    return stems & {file.stem for file in run.evaluation_files()}


def _beta(run: Run) -> float:
    """The gate's steepness as configured, else the paper's."""
    found = [value for name, value in flatten(run.config) if name.split(".")[-1] == "beta"]
    return float(found[0]) if len(found) == 1 else BETA


def _source(key: str, title: str, episodes: Sequence[Episode], limit: int) -> dict[str, Any]:
    chosen = [_episode(each) for each in mixed(episodes, limit)]
    return {"key": key, "title": title, "total": len(episodes), "episodes": chosen}


def _episode(episode: Episode) -> dict[str, Any]:
    trajectory = episode.trajectory
    tokens: Sequence[Tokens | None] = episode.tokens or [None] * len(trajectory.steps)
    return {
        "index": episode.index,
        "task": str(trajectory.task),
        "goal": trajectory.goal,
        "category": trajectory.category,
        "success": trajectory.success,
        "reward": _number(trajectory.reward),
        "score": _number(trajectory.score),
        "penalty": _number(trajectory.penalty),
        "stop": trajectory.stop,
        "seed": trajectory.seed,
        "advantage": _number(episode.advantage),
        "skill": episode.skill.to_json() if episode.skill else None,
        "final": trajectory.final_observation,
        "steps": [
            {
                "observation": step.observation,
                "image": step.image,
                "response": step.response,
                "action": step.action,
                "valid": step.valid,
                "reward": _number(step.reward),
                "tokens": _pack(found) if found else None,
            }
            for step, found in zip(trajectory.steps, tokens, strict=True)
        ],
    }


def _pack(tokens: Tokens) -> dict[str, Any]:
    return {
        "texts": tokens.texts,
        "ordinary": [_number(value) for value in tokens.ordinary],
        "skill": None if tokens.skill is None else [_number(value) for value in tokens.skill],
    }


def _number(value: float | None) -> float | None:
    """Four decimals, and null for what is not a number: JSON has no such value."""
    return round(value, 4) if value is not None and math.isfinite(value) else None
