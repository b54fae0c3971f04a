"""What the tiny policies are pretrained on: seeded, never from a panel, in each environment's own grammar."""

from __future__ import annotations

from itertools import islice

import pytest

from seed_opd.environments.alfworld.environment import AlfworldEnvironment
from seed_opd.errors import UserError
from seed_opd.policy.context import ChatTemplate, TranscriptContext
from seed_opd.training.demonstrations import demonstrations, teach, teacher
from seed_opd.training.demonstrations.webshop import PER_CATALOGUE
from seed_opd.training.pretrain import encode, encode_reading

STEPS = {"alfworld": 20, "webshop": 15, "search": 4, "sokoban": 15, "ezpoints": 8}


@pytest.mark.parametrize("name", STEPS)
def test_the_stream_is_seeded(name):
    first, again, other = (list(islice(demonstrations(name, seed, STEPS[name]), 8)) for seed in (3, 3, 4))
    assert first == again and first != other


@pytest.mark.parametrize("name", STEPS)
def test_play_is_in_the_response_grammar_and_a_skill_makes_it_straight(name):
    guide = teacher(name, STEPS[name])
    environment, episodes = guide.environment, list(islice(teach(guide, 5), 40))
    assert {e.kind for e in episodes} == {"search", "workflow", "correction"}
    for e in episodes:
        assert (e.skill is None) == (e.kind == "search")
        assert all(environment.parse(s.response).valid for s in e.trajectory.steps)
        assert [environment.parse(s.response).text for s in e.trajectory.steps] == [s.action for s in e.trajectory.steps]
        assert e.trajectory.success or e.kind == "search"
    lengths = {kind: [len(e.trajectory.steps) for e in episodes if e.kind == kind] for kind in ("search", "workflow")}
    assert sum(lengths["workflow"]) / len(lengths["workflow"]) <= sum(lengths["search"]) / len(lengths["search"])
    assert any(not e.trajectory.success for e in episodes)


def test_an_encoded_demonstration_reads_like_the_episode(tokenizer):
    context = TranscriptContext(ChatTemplate(tokenizer), AlfworldEnvironment(), 100_000)
    episode = next(e for e in demonstrations("alfworld", 6, 20) if e.skill)
    (sample,) = encode(context, episode)
    text = tokenizer.decode(sample.token_ids)
    assert episode.skill in text and episode.trajectory.goal in text
    responses = [tokenizer.decode(sample.token_ids[a:b]) for a, b in sample.spans]
    assert responses == [step.response + "<|im_end|>" for step in episode.trajectory.steps]


def test_a_reading_asks_for_what_stands_on_the_page(tokenizer):
    guide = teacher("webshop", 15)
    readings = list(islice(guide.readings(3), 4))
    assert readings == list(islice(teacher("webshop", 15).readings(3), 4))
    for reading in readings:
        assert "Page 1 (Total results" in reading.page and len(reading.exchanges) > 1
        for question, answer in reading.exchanges:
            if question.startswith("What is "):
                assert f"{question[len('What is ') : -1]} [SEP] {answer} [SEP] $" in reading.page
            else:
                number = guide.environment.parse(answer).text[len("click[") : -1].upper()
                assert f"open {number}" in answer and f"[SEP] {number} [SEP]" in reading.page
                asked = question[len("Open ") : -1]
                assert asked == number or f"{number} [SEP] {asked.removeprefix('the ')} [SEP]" in reading.page
    sample = encode_reading(ChatTemplate(tokenizer), readings[0])
    answers = [tokenizer.decode(sample.token_ids[a:b]) for a, b in sample.spans]
    assert answers == [answer + "<|im_end|>" for _, answer in readings[0].exchanges]
    assert tokenizer.decode(sample.token_ids).count(readings[0].page) == 1


def test_who_sees_is_shown_a_picture_at_every_step():
    pytest.importorskip("PIL")
    for name in ("sokoban", "ezpoints"):
        episode = next(demonstrations(name, 0, STEPS[name], view="image"))
        assert all(step.image for step in episode.trajectory.steps)
    assert all(step.image is None for step in next(demonstrations("sokoban", 0, 15)).trajectory.steps)


def test_an_option_that_changes_nothing_or_is_unknown_is_refused():
    for name, option in (("alfworld", "games"), ("webshop", "catalogue"), ("search", "passages")):
        with pytest.raises(UserError, match=f"{option}: .* changes nothing in the practice of {name}"):
            teacher(name, 10, **{option: "generated"})
    with pytest.raises(UserError, match="vieww: 'image' belongs to no option"):
        teacher("sokoban", 10, vieww="image")


def test_practice_catalogues_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    guide = teacher("webshop", 15)
    lessons = guide.lessons(0)
    first, later = next(lessons), next(islice(lessons, PER_CATALOGUE, None))
    assert first.begin().goal and later.begin().goal and first.begin().actions
    assert list(tmp_path.rglob("*")) == []


def test_nobody_teaches_an_unknown_environment():
    with pytest.raises(UserError, match="nobody plays 'chess' to imitate; choose one of"):
        teacher("chess", 10)
