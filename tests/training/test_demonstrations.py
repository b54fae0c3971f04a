"""What the tiny policy is pretrained on: seeded, from training rooms, in the environment's own grammar."""

from __future__ import annotations

from itertools import islice

from seed_opd.environments.alfworld.environment import AlfworldEnvironment
from seed_opd.policy.context import ChatTemplate, TranscriptContext
from seed_opd.training.demonstrations import demonstrations
from seed_opd.training.pretrain import encode


def test_the_stream_is_seeded():
    first, again, other = (list(islice(demonstrations(seed, 12), 12)) for seed in (3, 3, 4))
    assert first == again and first != other


def test_play_is_in_the_response_grammar_and_a_skill_makes_it_straight():
    environment = AlfworldEnvironment()
    episodes = list(islice(demonstrations(5, 20), 40))
    assert {e.kind for e in episodes} == {"search", "workflow", "correction"}
    for e in episodes:
        assert (e.skill is None) == (e.kind == "search")
        assert all(environment.parse(s.response).valid for s in e.trajectory.steps)
        assert [environment.parse(s.response).text for s in e.trajectory.steps] == [s.action for s in e.trajectory.steps]
        assert e.trajectory.success or e.kind == "search"


def test_an_encoded_demonstration_reads_like_the_episode(tokenizer):
    context = TranscriptContext(ChatTemplate(tokenizer), AlfworldEnvironment(), 100_000)
    episode = next(e for e in demonstrations(6, 20) if e.skill)
    (sample,) = encode(context, episode)
    text = tokenizer.decode(sample.token_ids)
    assert episode.skill in text and episode.trajectory.goal in text
    responses = [tokenizer.decode(sample.token_ids[a:b]) for a, b in sample.spans]
    assert responses == [step.response + "<|im_end|>" for step in episode.trajectory.steps]
