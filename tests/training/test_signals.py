"""From trajectories to what the loss reads: advantages, weights, and the guards against training on nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pstdev, stdev
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from seed_opd.errors import RunStopped
from seed_opd.methods import TABLE, Advantage, Method, loss_of, resolve
from seed_opd.policy.context import make_context
from seed_opd.training.signals import Scored, score, signals_of, step_advantages
from seed_opd.trajectory import Skill, Trajectory
from toys import Plain, Scorer, episode

SKILL = Skill("it went well", "look in the drawer first")
LOST = Skill("", "", "unparsed", "no idea")

# One task after the other, per trajectory: its reward, its number of steps, and whether its skill is usable.
groups_of_episodes = st.lists(
    st.lists(st.tuples(st.sampled_from([0.0, 10.0]), st.integers(1, 4), st.booleans()), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


def played(tokenizer: PreTrainedTokenizerBase, groups: Sequence[Sequence[tuple[float, int, bool]]]) -> list[Trajectory]:
    return [
        episode(tokenizer, [f"<action>{'x' * (n + 1)}</action>" for n in range(steps)], index=task, reward=reward)
        for task, group in enumerate(groups)
        for reward, steps, _ in group
    ]


def written(groups: Sequence[Sequence[tuple[float, int, bool]]]) -> list[Skill | None]:
    return [SKILL if usable else LOST for group in groups for _, _, usable in group]


def scored_by(
    tokenizer: PreTrainedTokenizerBase,
    method: Method,
    trajectories: Sequence[Trajectory],
    skills: Sequence[Skill | None],
    style: Any = "transcript",
    environment: Plain | None = None,
) -> list[Scored]:
    environment = environment or Plain()
    context = make_context(style, tokenizer, environment, window=2, max_prompt_tokens=4096)
    engine: Any = Scorer(tokenizer)
    return score(engine, context, environment, method, trajectories, skills)


# ---- advantages


@settings(max_examples=40, deadline=None)
@given(groups=groups_of_episodes, style=st.sampled_from(["windowed", "transcript"]))
def test_an_advantage_is_one_number_on_all_tokens_of_a_trajectory(tokenizer, groups, style):
    trajectories = played(tokenizer, groups)
    scored = scored_by(tokenizer, TABLE["grpo"], trajectories, [None] * len(trajectories), style)
    expected = []
    for group in groups:
        returns = [reward for reward, _, _ in group]
        expected += [(reward - fmean(returns)) / (pstdev(returns) + 1e-6) for reward in returns]
    tokens = [0] * len(trajectories)
    for item in scored:
        tokens[item.trajectory] += len(item.old)
        assert item.advantage.tolist() == pytest.approx([expected[item.trajectory]] * len(item.old), abs=1e-5)
        assert item.advantage.shape == item.old.shape
    assert tokens == [sum(len(step.response_ids) for step in t.steps) for t in trajectories]


def test_a_return_is_reward_minus_penalties(tokenizer):
    one = episode(tokenizer, ["a", "b"], reward=10.0, invalid=[0])
    two = episode(tokenizer, ["a", "b", "c"], reward=10.0, invalid=[0, 1, 2])
    (first, *_), (second, *_) = step_advantages([one, two], Advantage(normalise_std=False))
    assert (first, second) == pytest.approx((0.1, -0.1))


def test_step_samples_weigh_long_episodes_more_and_bear_their_own_penalty(tokenizer):
    one = episode(tokenizer, ["a"], reward=10.0)
    two = episode(tokenizer, ["a", "b", "c"], reward=0.0, invalid=[1])
    scores = [10.0, 0.0, -0.1, 0.0]
    expected = [(value - fmean(scores)) / (stdev(scores) + 1e-6) for value in scores]
    (first,), rest = step_advantages([one, two], Advantage(unit="step_sample"))
    assert [first, *rest] == pytest.approx(expected)


def test_groups_do_not_mix(tokenizer):
    made = [episode(tokenizer, ["a"], index=i, reward=r) for i, r in ((0, 10.0), (1, 0.0), (0, 10.0), (1, 0.0))]
    assert step_advantages(made, Advantage()) == [[0.0]] * 4


# ---- weights


def total(method: Method, batch: Sequence[Scored], cuts: Sequence[int] = ()) -> dict[str, float]:
    """The loss by component, summed over micro-batches that end at the cuts; the live log-probs differ from the old ones."""
    signals = signals_of(method, batch)
    sums: dict[str, float] = {}
    bounds = [0, *sorted(cuts), len(batch)]
    for start, end in pairwise(bounds):
        if start == end:
            continue
        live = torch.cat([item.old - 0.3 * (item.old * 37).cos() for item in batch[start:end]])
        joined = {name: torch.cat([signal[name] for signal in signals[start:end]]) for name in signals[0]}
        for name, part in loss_of(method)(live, joined).items():
            sums[name] = sums.get(name, 0.0) + float(part)
    return sums


normalisations = st.sampled_from(["tokens", "active", "trajectories"])


@settings(max_examples=40, deadline=None)
@given(
    groups=groups_of_episodes,
    normalisation=normalisations,
    style=st.sampled_from(["windowed", "transcript"]),
    data=st.data(),
)
def test_neither_micro_batches_nor_their_order_change_the_loss(tokenizer, groups, normalisation, style, data):
    parts = {name: {"normalisation": normalisation} for name in ("surrogate", "divergence", "distillation")}
    method = resolve("seed", parts)
    scored = scored_by(tokenizer, method, played(tokenizer, groups), written(groups), style)
    whole = total(method, scored)
    cuts = data.draw(st.lists(st.integers(0, len(scored)), max_size=4))
    assert total(method, scored, cuts) == pytest.approx(whole, rel=1e-4, abs=1e-6)
    order = data.draw(st.permutations(scored))
    assert total(method, order, cuts) == pytest.approx(whole, rel=1e-4, abs=1e-6)


# Two trajectories: 2 and 4 response tokens with a skill, 3 without. Weights by hand.
@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("tokens", [1 / 9] * 6 + [0] * 3),
        ("active", [1 / 6] * 6 + [0] * 3),
        ("trajectories", [1 / 6 / 2] * 6 + [0] * 3),
    ],
)
def test_weights_of_the_distillation_by_hand(tokenizer, normalisation, expected):
    trajectories = [episode(tokenizer, ["a", "bcd"]), episode(tokenizer, ["ab"], reward=0.0)]
    method = resolve("seed", {"distillation": {"normalisation": normalisation, "weight": 1.0}})
    for style in ("transcript", "windowed"):
        scored = scored_by(tokenizer, method, trajectories, [SKILL, LOST], style)
        weights = torch.cat([signal["distillation_weight"] for signal in signals_of(method, scored)])
        assert weights.tolist() == pytest.approx(expected)


def test_each_component_has_its_own_denominator(tokenizer):
    trajectories = [episode(tokenizer, ["a", "bcd"]), episode(tokenizer, ["ab"], reward=0.0)]
    method = resolve("seed", {"divergence": {"weight": 0.5, "normalisation": "trajectories"}})
    signals = signals_of(method, scored_by(tokenizer, method, trajectories, [SKILL, LOST]))
    assert torch.cat([s["surrogate_weight"] for s in signals]).tolist() == pytest.approx([1 / 9] * 9)
    assert torch.cat([s["kl_weight"] for s in signals]).tolist() == pytest.approx([0.5 / 6 / 2] * 6 + [0.5 / 3 / 2] * 3)
    assert torch.cat([s["distillation_weight"] for s in signals]).tolist() == pytest.approx([0.01 / 6] * 6 + [0] * 3)


# ---- which tokens, and the second scoring


@pytest.mark.parametrize("style", ["transcript", "windowed"])
def test_action_tokens_alone(tokenizer, style):
    responses = ["<think>so</think><action>go to bed 1</action>", "no tags", "<action>look</action>"]
    method = resolve("seed", {"distillation": {"tokens": "action"}})
    scored = scored_by(tokenizer, method, [episode(tokenizer, responses)], [SKILL], style)
    chosen = [
        tokenizer.decode(
            [token for token, inside in zip(item.sample.response_ids, item.eligible.tolist(), strict=True) if inside]
        )
        for item in scored
    ]
    assert "".join(chosen) == "go to bed 1look"
    weights = torch.cat([signal["distillation_weight"] for signal in signals_of(method, scored)])
    assert int((weights > 0).sum()) == len("go to bed 1look")


@pytest.mark.parametrize("style", ["transcript", "windowed"])
def test_the_second_scoring_is_of_the_same_tokens_behind_the_skill(tokenizer, style):
    trajectories = [episode(tokenizer, ["ab", "c"]), episode(tokenizer, ["d"], reward=0.0)]
    scored = scored_by(tokenizer, TABLE["seed"], trajectories, [SKILL, LOST], style)
    context = make_context(style, tokenizer, Plain(), window=2, max_prompt_tokens=4096)
    expected = Scorer(tokenizer).logprobs(context.samples(trajectories[0], SKILL.skill))
    with_skill = [item for item in scored if item.trajectory == 0]
    assert [item.skill.tolist() for item in with_skill] == [scores.tolist() for scores in expected]
    assert all(item.gap.tolist() == (item.skill - item.old).tolist() for item in with_skill)
    assert [item.skill for item in scored if item.trajectory == 1] == [None] * (len(scored) - len(with_skill))
    assert scored[0].old.tolist() == pytest.approx([-0.5] * 3 + ([-0.51] * 2 if style == "transcript" else []))


def test_a_skill_that_changes_no_prompt_stops_the_run(tokenizer):
    class Deaf(Plain):
        def opening(self, goal, observation, skill):
            return super().opening(goal, observation, None)

    with pytest.raises(RunStopped, match="the skill context of trajectory 0 equals the ordinary one"):
        scored_by(tokenizer, TABLE["seed"], [episode(tokenizer, ["a"])], [SKILL], environment=Deaf())


def test_the_reward_alone_scores_no_skill_and_without_divergence_no_reference(tokenizer):
    made = [episode(tokenizer, ["a"])]
    assert scored_by(tokenizer, TABLE["grpo"], made, [None])[0].skill is None
    assert scored_by(tokenizer, TABLE["grpo"], made, [None])[0].reference is not None
    bare = resolve("grpo", {"divergence": {"weight": 0}})
    assert scored_by(tokenizer, bare, made, [None])[0].reference is None
    assert set(signals_of(bare, scored_by(tokenizer, bare, made, [None]))[0]) == {"old", "advantage", "surrogate_weight"}


def test_the_order_of_trajectories_does_not_matter(tokenizer):
    groups = [[(10.0, 2, True), (0.0, 3, False)], [(0.0, 1, True), (10.0, 4, True)]]
    trajectories, skills = played(tokenizer, groups), written(groups)
    order = random.Random(0).sample(range(4), 4)
    plain = scored_by(tokenizer, TABLE["seed"], trajectories, skills)
    mixed = scored_by(tokenizer, TABLE["seed"], [trajectories[i] for i in order], [skills[i] for i in order])
    assert [float(item.advantage[0]) for item in mixed] == pytest.approx([float(plain[i].advantage[0]) for i in order])
    assert total(TABLE["seed"], mixed) == pytest.approx(total(TABLE["seed"], plain), rel=1e-4)
