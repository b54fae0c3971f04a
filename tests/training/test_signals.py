"""From trajectories to what the loss reads: advantages, weights, and the guards against training on nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, pstdev, stdev
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from seed_opd.errors import RunStopped
from seed_opd.methods import TABLE, Advantage, Method, StepCredit, loss_of, resolve
from seed_opd.policy.context import make_context
from seed_opd.training.advantages import step_advantages
from seed_opd.training.scoring import Scored, control_skills, score, telling_tasks
from seed_opd.training.signals import signals_of
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
    signals = signals_of(method, batch, 1)
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
        weights = torch.cat([signal["distillation_weight"] for signal in signals_of(method, scored, 1)])
        assert weights.tolist() == pytest.approx(expected)


def test_each_component_has_its_own_denominator(tokenizer):
    trajectories = [episode(tokenizer, ["a", "bcd"]), episode(tokenizer, ["ab"], reward=0.0)]
    method = resolve("seed", {"divergence": {"weight": 0.5, "normalisation": "trajectories"}})
    signals = signals_of(method, scored_by(tokenizer, method, trajectories, [SKILL, LOST]), 1)
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
    weights = torch.cat([signal["distillation_weight"] for signal in signals_of(method, scored, 1)])
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
    assert set(signals_of(bare, scored_by(tokenizer, bare, made, [None]), 1)[0]) == {"old", "advantage", "surrogate_weight"}


def test_the_order_of_trajectories_does_not_matter(tokenizer):
    groups = [[(10.0, 2, True), (0.0, 3, False)], [(0.0, 1, True), (10.0, 4, True)]]
    trajectories, skills = played(tokenizer, groups), written(groups)
    order = random.Random(0).sample(range(4), 4)
    plain = scored_by(tokenizer, TABLE["seed"], trajectories, skills)
    mixed = scored_by(tokenizer, TABLE["seed"], [trajectories[i] for i in order], [skills[i] for i in order])
    assert [float(item.advantage[0]) for item in mixed] == pytest.approx([float(plain[i].advantage[0]) for i in order])
    assert total(TABLE["seed"], mixed) == pytest.approx(total(TABLE["seed"], plain), rel=1e-4)


# ---- what only some rows have


def test_step_credit_compares_steps_that_saw_the_same(tokenizer):
    """One task, both episodes see obs0 and then obs1: the returns from there are 0.95 x 10 and 10, or 0 and 0."""
    one = episode(tokenizer, ["a", "b"], reward=10.0)
    two = episode(tokenizer, ["c", "d"], reward=0.0)
    row = Advantage(normalise_std=False, steps=StepCredit(weight=2.0, discount=0.95))
    first, second = step_advantages([one, two], row)
    assert first == pytest.approx([5 + 2 * 9.5 / 2, 5 + 2 * 10 / 2])
    assert second == pytest.approx([-value for value in first])


def test_step_credit_does_not_compare_across_tasks(tokenizer):
    made = [episode(tokenizer, ["a"], index=0, reward=10.0), episode(tokenizer, ["a"], index=1, reward=0.0)]
    assert step_advantages(made, Advantage(steps=StepCredit())) == [[0.0], [0.0]]


def test_the_gap_becomes_a_part_of_the_advantage(tokenizer):
    made = played(tokenizer, [[(10.0, 2, True), (0.0, 1, False)]])
    method = resolve("opid", {"step_skills": False})
    scored = scored_by(tokenizer, method, made, [SKILL, LOST])
    with_skill, without = signals_of(method, scored, 1)
    torch.testing.assert_close(with_skill["advantage"], scored[0].advantage + 0.001 * scored[0].gap)
    assert torch.equal(without["advantage"], scored[1].advantage)


def test_a_modulation_fades_out(tokenizer):
    method = resolve("rlsd", {"shaping": {"decay_updates": 2}})
    scored = scored_by(tokenizer, method, played(tokenizer, [[(10.0, 2, True), (0.0, 1, True)]]), [SKILL, SKILL])
    first, second, third = (signals_of(method, scored, update)[0]["advantage"] for update in (1, 2, 3))
    torch.testing.assert_close(second, (first + third) / 2)
    assert torch.equal(third, scored[0].advantage) and not torch.equal(first, third)


@pytest.mark.parametrize("style", ["windowed", "transcript"])
def test_a_step_with_its_own_skill_is_scored_with_it_and_the_others_are_not(tokenizer, style):
    made = played(tokenizer, [[(10.0, 3, True), (0.0, 1, True)]])
    own = replace(SKILL, steps=((1, "take it now"),))
    method = resolve("opid")
    plain = scored_by(tokenizer, method, made, [SKILL, SKILL], style)
    routed = scored_by(tokenizer, method, made, [own, SKILL], style)
    only = scored_by(tokenizer, method, made, [replace(SKILL, skill="take it now"), SKILL], style)
    for step, expected in ((0, plain), (1, only), (2, plain)):
        assert torch.equal(of_step(routed, step), of_step(expected, step))
    assert not torch.equal(of_step(routed, 1), of_step(plain, 1))


def of_step(scored: Sequence[Scored], step: int) -> torch.Tensor:
    """The skill log-probs of a step of the first trajectory."""
    (found,) = [
        part
        for item in scored
        if item.trajectory == 0
        for number, part in zip(item.sample.steps, item.skill.split([b - a for a, b in item.sample.spans]), strict=True)
        if number == step
    ]
    return found


def test_a_control_skill_is_another_tasks_of_the_same_length(tokenizer):
    made = played(tokenizer, [[(10.0, 1, True), (0.0, 1, True)], [(10.0, 1, True), (0.0, 1, True)]])
    texts = {0: "aaaa", 1: "bbbbbbbb", 2: "cccccccc", 3: "ddddd"}
    assert control_skills(made, texts) == {0: "ddddd", 1: "cccccccc", 2: "bbbbbbbb", 3: "aaaa"}
    assert control_skills(made, {0: "alone", 1: "in its task"}) == {}


def test_without_a_control_there_is_no_distillation(tokenizer):
    made = played(tokenizer, [[(10.0, 1, True), (0.0, 1, True)]])
    method = TABLE["seed_control"]
    weights = [
        signal["distillation_weight"] for signal in signals_of(method, scored_by(tokenizer, method, made, [SKILL] * 2), 1)
    ]
    assert torch.cat(weights).sum() == 0


def test_the_floor_keeps_tasks_whose_gap_tells_better_from_worse(tokenizer):
    made = played(tokenizer, [[(10.0, 1, True), (0.0, 1, True)] for _ in range(3)] + [[(0.0, 1, True), (0.0, 1, True)]])
    gaps = [2.0, 1.0, 1.0, 2.0, -1.0, -3.0, 5.0, 5.0]
    scored = [
        replace(item, skill=item.old + gap)
        for item, gap in zip(scored_by(tokenizer, TABLE["grpo"], made, [None] * 8), gaps, strict=True)
    ]
    assert {task.index for task in telling_tasks(made, scored)} == {0, 2}


def test_the_floor_turns_the_distillation_off(tokenizer):
    made = played(tokenizer, [[(0.0, 1, True), (0.0, 1, True)]])
    method = TABLE["seed_floor"]
    scored = scored_by(tokenizer, method, made, [SKILL] * 2)
    assert all(item.floored for item in scored)
    assert sum(float(signal["distillation_weight"].sum()) for signal in signals_of(method, scored, 1)) == 0


def test_a_skill_in_the_actors_prompt_is_in_its_ordinary_context(tokenizer):
    made = [replace(trajectory, prompt_skill="look around") for trajectory in played(tokenizer, [[(10.0, 2, False)]])]
    (item,) = scored_by(tokenizer, TABLE["grpo"], made, [None])
    assert "K:look around" in tokenizer.decode(list(item.sample.token_ids))
