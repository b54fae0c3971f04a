"""The policy as analyzer reads its episodes as the config says; as a conversation, it goes on where acting ended."""

from __future__ import annotations

import pytest

from seed_opd.config import load
from seed_opd.errors import UserError
from seed_opd.hindsight.views import ConversationView, DocumentView
from seed_opd.policy.rollout import Assignment
from seed_opd.training.analyzers import analyzer_view, policy_analyzer
from seed_opd.training.pairs import Annotated, pair_sample
from seed_opd.training.setup import set_up
from seed_opd.trajectory import Skill

SMALL = ["threads=1", "environment.max_steps=4", "analyzer.max_tokens=60", "rollout.concurrency=4"]


@pytest.fixture(scope="module")
def parts():
    return set_up(load("demo", [*SMALL, "analyzer.view=conversation"]))


def play(parts, count):
    tasks = list(parts.environment.tasks("train"))[:2]
    return parts.player.play([Assignment(tasks[number % 2], f"seed/{number}") for number in range(count)], 1.0)


def read_by(parts, work):
    """What `work` gives, and how many tokens the model read meanwhile, padding included."""
    tokens = []
    embeddings = parts.engine.sampler.model.get_input_embeddings()
    handle = embeddings.register_forward_hook(lambda module, inputs, output: tokens.append(inputs[0].numel()))
    result = work()
    handle.remove()
    return result, sum(tokens)


def test_the_analysis_goes_on_from_the_cache_and_reads_the_same_without_it(parts):
    trajectories = play(parts, 4)
    analyzer = policy_analyzer(parts)
    prompts = sum(len(analyzer_view(parts, 9999).prompt(t).ids) for t in trajectories)
    continued, few = read_by(parts, lambda: analyzer.analyze(trajectories))
    anew, many = read_by(parts, lambda: analyzer.analyze(trajectories))  # the last call's conversations have other ends
    parts.engine.publish()
    cold, most = read_by(parts, lambda: analyzer.analyze(trajectories))
    assert continued == anew == cold
    assert few + 0.5 * prompts < most and many < most


def test_of_several_waves_the_last_is_continued(parts):
    trajectories = play(parts, 6)
    skills, _ = read_by(parts, lambda: policy_analyzer(parts).analyze(trajectories))
    parts.engine.publish()
    assert skills == policy_analyzer(parts).analyze(trajectories)


def test_stage_1_trains_on_what_the_analyzer_reads(parts):
    (trajectory,) = play(parts, 1)
    sample = pair_sample(
        parts.context.template, analyzer_view(parts, 1000), Annotated(trajectory, Skill("it went.", "look"))
    )
    prompt = policy_analyzer(parts).inner.view.prompt(trajectory)
    assert sample.token_ids[: sample.spans[0][0]] == tuple(prompt.ids) and prompt.key == trajectory.seed
    (acted,) = parts.context.samples(trajectory)
    assert sample.token_ids[: len(acted.token_ids)] == acted.token_ids


def test_the_view_is_the_configs():
    assert isinstance(analyzer_view(set_up(load("demo", ["threads=1", "analyzer.view=document"])), 99), DocumentView)
    assert isinstance(analyzer_view(set_up(load("demo", ["threads=1", "analyzer.view=conversation"])), 99), ConversationView)
    with pytest.raises(UserError, match=r"analyzer\.view: conversation"):
        load("demo", ["analyzer.view=conversation", "context.style=windowed"])
