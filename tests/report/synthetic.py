"""A run's folder with made-up but plausible content, written as the training loop writes it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_opd.evaluation.statistics import Count, macro, micro
from seed_opd.trajectory import Skill, Step, Task, Trajectory, write_jsonl

FAMILIES = {"Pick": 35, "Look": 13, "Clean": 27, "Heat": 16, "Cool": 25, "Pick2": 24}
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><!-- {{ 7*7 }} &amp;"
CONFIG = """\
method: {method}
recipe: alfworld-tiny
model: tiny-household-2m
environment: {{name: alfworld, max_steps: 30}}
context: windowed
seed: {seed}
data_hash: 3f9a1c0d
distillation: {{beta: 5.0, weight: 0.01}}
"""
ROOM = (
    "You arrive at {place}. On the {place}, you see a {thing}, a saltshaker 2, and a plate 1.",
    "The {place} is closed.",
    "You pick up the {thing} from the {place}.",
    "You are in the middle of a room. You see a cabinet 1, a countertop 2, a fridge 1, a sinkbasin 1.",
)

RULES = {
    True: "First look for the object on countertops, then carry it to the sink before placing it.",
    False: "Do not return to a cabinet that was empty; try the fridge instead.",
}


def write_run(
    path: Path,
    *,
    method: str = "seed",
    seed: int = 0,
    updates: int = 6,
    every: int = 2,
    group: int = 8,
    gain: float = 0.45,
    hostile: bool = False,
) -> Path:
    """Write a whole run: metrics, kept episodes of every `every`-th update, and evaluations of two panels."""
    draw = random.Random(f"{method}/{seed}")
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").write_text(CONFIG.format(method=method, seed=seed))
    shared = random.Random(f"start/{seed}")
    rows: list[dict[str, Any]] = []
    rows += evaluate(path, "start", 0, 0.24, shared)
    rows.append(probe(0, 0.62, shared))
    for update in range(1, updates + 1):
        progress = 1 - math.exp(-2.5 * update / updates)
        rows.append(train(update, 0.24 + gain * progress, progress, method, draw))
        if update % every == 0 or update == updates:
            rows += evaluate(path, "update", update, 0.24 + gain * progress, draw)
            rows.append(probe(update, 0.62 + (0.25 if method == "seed" else -0.2) * progress, draw))
            keep_episodes(path, update, group, draw, hostile, with_skill=method != "grpo")
    rows.append({"kind": "warning", "update": 1, "message": HOSTILE if hostile else "2 skills repeat the task", "count": 2})
    rows.append({"kind": "warning", "update": 3, "message": "responses reached the token limit", "count": 7})
    rows.append({"kind": "warning", "update": 4, "message": "responses reached the token limit", "count": 5})
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_base(path: Path) -> Path:
    """Write the folder of one evaluation, outside any run."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").write_text(CONFIG.format(method="seed", seed=0))
    rows = evaluate(path, "base", 0, 0.06, random.Random("base"))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(path: Path, label: str, update: int, share: float, draw: random.Random) -> list[dict[str, Any]]:
    rows = []
    for panel, harder in (("seen", 0.0), ("unseen", 0.05)):
        trajectories, counts = [], {}
        for number, (family, size) in enumerate(FAMILIES.items()):
            rate = min(0.97, max(0.02, share - harder + 0.08 * math.sin(2.1 * number)))
            won = [draw.random() < rate for _ in range(size)]
            counts[family] = {"successes": sum(won), "episodes": size}
            for index, success in enumerate(won):
                task = Task("alfworld", panel, 100 * number + index)
                trajectories.append(trajectory(task, family, success, draw, steps=2))
        name = f"update-{update:04d}" if label == "update" else label
        write_jsonl(path / "evaluations" / f"{name}-{panel}.jsonl", trajectories)
        found = {name: Count(**count) for name, count in counts.items()}
        row: dict[str, Any] = {"kind": "evaluation", "update": update, "panel": panel, "label": label, "categories": counts}
        for average, interval in (("macro", macro(found)), ("micro", micro(found))):
            row |= {average: interval.value, f"{average}_low": interval.low, f"{average}_high": interval.high}
        row |= {"episodes": sum(FAMILIES.values()), "temperature": 0.4, "steps": 30}
        rows.append(row)
    return [*rows, {"kind": "cost", "update": update, "seconds/evaluation": 31.5}]


def train(update: int, success: float, progress: float, method: str, draw: random.Random) -> dict[str, Any]:
    def near(value: float, spread: float = 0.06) -> float:
        return value * (1 + draw.gauss(0, spread))

    skilled = method != "grpo"
    row: dict[str, Any] = {
        "kind": "train",
        "update": update,
        "success": min(1.0, near(success)),
        "reward/mean": near(10 * success),
    }
    row |= {"episode/steps": near(24 - 9 * progress), "invalid_share": near(0.12 - 0.09 * progress)}
    row |= {"entropy": near(0.9 - 0.35 * progress), "cut_share": near(0.02, 0.3), "loss/replay": near(0.4)}
    row |= {"equal_groups_share": near(0.3 + 0.15 * progress, 0.1)}
    row |= {"loss/surrogate": draw.gauss(-0.01, 0.012), "loss/kl": near(0.0002 + 0.003 * progress)}
    row |= {"grad_norm/total": near(0.8, 0.15), "signal/surrogate": near(0.09, 0.15), "signal/kl": near(0.002)}
    row |= {"seconds/rollout": near(6.4), "seconds/learning": near(4.1), "tokens/rollout": 41000, "tokens/learning": 41000}
    if skilled:
        row |= {
            "loss/distillation": draw.gauss(-0.012, 0.004),
            "signal/distillation": near(0.004),
            "gap/absolute": near(0.3),
        }
        row |= {"gap/mean": draw.gauss(-0.02, 0.006), "gap/mean_success": draw.gauss(0.011, 0.006)}
        row |= {"gap/mean_failure": draw.gauss(-0.05, 0.008), "gate/active_share": near(0.42)}
        row |= {"skill/usable_share": min(1.0, near(0.9)), "skill/characters": near(84)}
        row |= {
            "skill/duplicate": draw.randrange(9),
            "skill/leak": 0,
            "skill/contradiction": draw.randrange(3),
            "skill/short": 1,
        }
        row |= {
            "seconds/analysis": near(2.2),
            "seconds/scoring": near(1.4),
            "tokens/analysis": 9000,
            "tokens/scoring": 43000,
        }
    return row


def probe(update: int, score: float, draw: random.Random) -> dict[str, Any]:
    parts = {name: min(1.0, max(0.0, score + draw.gauss(shift, 0.03)))
             for name, shift in (("object", 0.1), ("place", -0.12), ("tool", 0.0), ("kind_right", 0.15))}  # fmt: skip
    return {"kind": "probe", "update": update, "score": score, "usable": 1.0, **parts}


def trajectory(
    task: Task, family: str, success: bool, draw: random.Random, steps: int, text: str | None = None
) -> Trajectory:
    thing, place = draw.choice(["mug 2", "tomato 1", "soapbar 3"]), draw.choice(["cabinet 3", "countertop 1", "fridge 1"])
    turns = []
    for number in range(steps):
        action = draw.choice([f"go to {place}", f"take {thing} from {place}", f"open {place}", "look"])
        valid = number != 1 or success
        response = (
            f"<think>The {thing} may be near the {place}.</think><action>{action}</action>" if valid else f"I will {action}."
        )
        observation = draw.choice(ROOM).format(place=place, thing=thing)
        reward = 10.0 if success and number == steps - 1 else 0.0
        turns.append(Step(text or observation, response + (text or ""), action, valid, reward, None, (1, 2), (-0.1, -0.2)))
    return Trajectory(
        task,
        text or f"put a clean {thing.split()[0]} in the {place.split()[0]}.",
        family,
        tuple(turns),
        success,
        float(success),
        "You won." if success else "Nothing happens.",
        0.0 if success else 0.1,
        draw.randrange(1000),
        "done" if success else "steps",
    )


def keep_episodes(path: Path, update: int, group: int, draw: random.Random, hostile: bool, with_skill: bool) -> None:
    trajectories, skills, gaps, tokens = [], [], [], []
    for index in range(group):
        success, family = index % 3 != 1, list(FAMILIES)[index % len(FAMILIES)]
        text = HOSTILE if hostile and index == 0 else None
        task = Task("alfworld", "train", index // 4)
        each = trajectory(task, family, success, draw, 5 + index % 4, text)
        usable = with_skill and index != 4
        rule = text or RULES[success]
        skill = Skill("The agent searched the room and handled one object.", rule, "ok", "", "policy")
        skills.append(skill if usable else Skill("", "", "unparsed", text or '{"summary": "the agent', "policy"))
        trajectories.append(each)
        texts = [pieces(step.response) for step in each.steps]
        ordinary = [[-abs(draw.gauss(0, 0.6)) - 0.01 for _ in step] for step in texts]
        signal = [
            [value + draw.gauss(0.02 if success else -0.1, 0.25 + (draw.random() < 0.12)) for value in step]
            for step in ordinary
        ]
        gaps.append({"advantage": 0.7 if success else -1.2, "ordinary": ordinary, "skill": signal if usable else None})
        tokens.append({"tokens": texts})
    name = f"update-{update:04d}.jsonl"
    write_jsonl(path / "trajectories" / name, trajectories)
    if with_skill:
        write_jsonl(path / "skills" / name, skills)
    write_lines(path / "gaps" / name, gaps)
    write_lines(path / "tokens" / name, tokens)


def pieces(text: str) -> list[str]:
    """Cut a text as a tokenizer would, roughly: each word with the space before it."""
    return [(" " if number else "") + word for number, word in enumerate(text.split(" "))]


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
