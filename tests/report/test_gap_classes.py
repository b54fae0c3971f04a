"""Sums of the gap by outcome, tag and certainty, worked out by hand."""

from __future__ import annotations

import json

from seed_opd.report.gap_classes import gap_classes
from seed_opd.trajectory import Step, Task, Trajectory, write_jsonl

TEXTS = ["<th", "ink>", "find", "</think>", "<b>", "<action>", "go", "</action>", "."]


def write(folder, skill):
    step = Step("o", "".join(TEXTS), "go", True, 0.0)
    write_jsonl(
        folder / "trajectories" / "update-0001.jsonl", [Trajectory(Task("e", "train", 0), "g", "c", (step,), True, 1.0)]
    )
    ordinary = [0.0, -0.05, -1.0, -0.1, 0.0, -0.2, -2.0, 0.0, -0.5]
    for name, row in (("gaps", {"advantage": 1.0, "ordinary": [ordinary], "skill": skill}), ("tokens", {"tokens": [TEXTS]})):
        (folder / name).mkdir()
        (folder / name / "update-0001.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "metrics.jsonl").write_text('{"kind": "train", "update": 1}\n')


def test_gaps_are_summed_by_tag_and_certainty(tmp_path):
    """0.9 is exp(-0.105): -0.1 is sure, -0.2 is open. "<th" stands before any whole tag, "<b>" is none."""
    write(tmp_path, [[-0.5, -0.05, -0.25, -0.4, 0.0, 0.0, -3.0, 0.0, 0.0]])
    rows = {row["class"]: row for row in gap_classes(tmp_path)}
    assert {name: (row["tokens"], row["above"], row["below"]) for name, row in rows.items()} == {
        "text, sure": (2, 0, -0.5),
        "text, open": (1, 0.5, 0),
        "think, sure": (2, 0, -0.3),
        "think, open": (1, 0.75, 0),
        "action, open": (2, 0.2, -1.0),
        "action, sure": (1, 0, 0),
    }
    assert all((row["kind"], row["update"], row["outcome"]) == ("gaps", 1, "success") for row in rows.values())


def test_what_was_scored_once_has_no_gap(tmp_path):
    write(tmp_path, None)
    assert gap_classes(tmp_path) == []
