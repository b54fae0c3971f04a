"""What lies on disk is what was in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seed_opd.errors import UserError
from seed_opd.trajectory import (
    Skill,
    SkillStatus,
    Step,
    Task,
    Trajectory,
    read_jsonl,
    read_skills,
    read_trajectories,
    write_jsonl,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**31)
tasks = st.builds(Task, texts, texts, counts, counts)
steps = st.builds(
    Step,
    observation=texts,
    response=texts,
    action=texts,
    valid=st.booleans(),
    reward=numbers,
    actions=st.none() | st.lists(texts, max_size=3).map(tuple),
    response_ids=st.lists(counts, max_size=4).map(tuple),
    log_probs=st.lists(numbers, max_size=4).map(tuple),
)
trajectories = st.builds(
    Trajectory,
    task=tasks,
    goal=texts,
    category=texts,
    steps=st.lists(steps, max_size=3).map(tuple),
    success=st.booleans(),
    score=numbers,
    final_observation=texts,
    penalty=numbers,
    seed=texts,
    stop=st.sampled_from(["done", "steps"]),
)
skills = st.builds(Skill, texts, texts, st.sampled_from(get_args(SkillStatus)), texts, texts)


@settings(deadline=None)
@given(rows=st.lists(trajectories, max_size=3))
def test_trajectories_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, rows: list[Trajectory]) -> None:
    path = tmp_path_factory.mktemp("trajectories") / "rows.jsonl"
    write_jsonl(path, rows)
    assert read_trajectories(path) == rows
    assert path.read_bytes().count(b"\n") == len(rows)


@settings(deadline=None)
@given(rows=st.lists(skills, max_size=4))
def test_skills_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, rows: list[Skill]) -> None:
    path = tmp_path_factory.mktemp("skills") / "rows.jsonl"
    write_jsonl(path, rows)
    assert read_skills(path) == rows


def test_fields_that_a_later_version_adds_are_passed_over() -> None:
    step = Step("seen", "said", "done", True, 1.0, ("a", "b"), (1, 2), (-0.1, -0.2))
    made = Trajectory(Task("plain", "train", 3), "goal", "all", (step,), True, 1.0)
    data = json.loads(json.dumps(made.to_json()))
    data["new"], data["steps"][0]["new"] = 1, 2
    assert Trajectory.from_json(data) == made
    assert Skill.from_json({"summary": "s", "skill": "k", "new": 3}) == Skill("s", "k")


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(UserError, match=r"rows\.jsonl:2 is not a JSON object"):
        list(read_jsonl(tmp_path / "rows.jsonl"))


def test_a_task_reads_as_its_name_and_a_return_is_the_sum_of_rewards() -> None:
    task = Task("plain", "train", 3, 7)
    steps = tuple(Step("o", "r", "a", True, reward) for reward in (0.25, 0.0, 0.5))
    made = Trajectory(task, "goal", "all", steps, False, 0.0, penalty=0.1)
    assert (str(task), made.reward, made.outcome) == ("plain/train:3@7", 0.75, "failure")


@pytest.mark.parametrize("status", get_args(SkillStatus))
def test_only_a_skill_that_is_ok_is_used(status: SkillStatus) -> None:
    assert Skill("s", "k", status).usable == (status == "ok")
