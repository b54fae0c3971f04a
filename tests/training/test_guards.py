"""What cannot be right stops the run; what should be looked at is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from seed_opd.policy.engine import Sampled, Sampling
from seed_opd.policy.samples import Sample
from seed_opd.training.guards import (
    AGREEMENT,
    MEAN_AGREEMENT,
    RunStopped,
    check_first_step,
    check_published,
    check_update,
)
from seed_opd.training.scoring import Scored
from toys import Scorer, episode

GOOD = {
    "invalid_share": 0.1,
    "entropy": 0.5,
    "cut_share": 0.0,
    "equal_groups_share": 0.5,
    "skill/usable_share": 1.0,
    "loss/surrogate": 0.1,
}


def test_a_good_update_passes_without_a_word() -> None:
    assert check_update(GOOD) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"loss/surrogate": float("nan")}, "loss/surrogate is not a finite number; lower optimizer.learning_rate"),
        ({"grad_norm/total": float("inf")}, "grad_norm/total is not a finite number"),
        ({"invalid_share": 1.0}, "every action was invalid"),
        ({"entropy": 1e-5}, r"the entropy fell to 0\.00001 nats a token"),
    ],
)
def test_what_cannot_be_right_stops_the_run(change: dict[str, float], sentence: str) -> None:
    with pytest.raises(RunStopped, match=sentence):
        check_update(GOOD | change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"skill/usable_share": 0.0}, "no skill was usable"),
        ({"skill/usable_share": 0.3}, "fewer than half of the skills were usable"),
        ({"cut_share": 0.6}, "more than half of the responses were cut at context.max_response_tokens"),
        ({"equal_groups_share": 1.0}, "all groups had equal returns"),
    ],
)
def test_what_should_be_looked_at_is_a_warning(change: dict[str, float], sentence: str) -> None:
    (message,) = check_update(GOOD | change)
    assert message.startswith(sentence)


def test_a_method_without_skills_is_not_warned_about_them() -> None:
    assert check_update({name: value for name, value in GOOD.items() if not name.startswith("skill/")}) == []


def scored(tokenizer: Any, off: float, count: int = 6) -> list[Scored]:
    """Samples whose old log-probs are off by so much on one token of the second sample."""
    ids = tuple(range(10))
    samples = [Sample((*ids, number, number + 1), ((10, 12),)) for number in range(count)]
    olds = [scores.clone() for scores in Scorer(tokenizer).logprobs(samples)]
    olds[1][1] += off
    return [Scored(n, sample, old, torch.zeros(2)) for n, (sample, old) in enumerate(zip(samples, olds, strict=True))]


@pytest.mark.parametrize("dtype", sorted(AGREEMENT))
def test_sampler_and_trainer_must_agree_on_every_token(tokenizer, dtype):
    engine: Any = Scorer(tokenizer)
    check_first_step(engine, scored(tokenizer, 0.5 * AGREEMENT[dtype]), dtype)
    for sign in (1, -1):
        with pytest.raises(RunStopped, match="sampler and trainer disagree on a token by"):
            check_first_step(engine, scored(tokenizer, 2 * sign * AGREEMENT[dtype]), dtype)


def test_a_small_difference_on_every_token_is_too_much(tokenizer):
    """Rounding differs from token to token; other weights differ on all of them."""
    off = 1.5 * MEAN_AGREEMENT["bfloat16"]
    assert off < AGREEMENT["bfloat16"]
    batch = [replace(item, old=item.old + off) for item in scored(tokenizer, 0.0)]
    engine: Any = Scorer(tokenizer)
    with pytest.raises(RunStopped, match=r"and by 0\.1500 in the mean"):
        check_first_step(engine, batch, "bfloat16")


def test_nothing_to_compare_is_no_difference(tokenizer):
    engine: Any = Scorer(tokenizer)
    check_first_step(engine, [Scored(0, Sample((1, 2), ()), torch.empty(0), torch.empty(0))], "float32")


def test_a_policy_that_was_not_published_is_noticed(tokenizer):
    """The episode was sampled with log-probs that are not those of the engine."""
    made = episode(tokenizer, ["a"])
    ids = made.steps[0].response_ids
    sample = Sample((1, 2, *ids), ((2, 2 + len(ids)),))
    item = Scored(0, sample, torch.tensor(made.steps[0].log_probs), torch.zeros(len(ids)))
    engine: Any = Scorer(tokenizer)
    with pytest.raises(RunStopped, match="publish after every step"):
        check_first_step(engine, [item], "float32")


class Drawer(Scorer):
    """A `Scorer` that also samples fixed tokens, with log-probs that are off by so much on the last one."""

    def __init__(self, tokenizer: Any, off: float) -> None:
        super().__init__(tokenizer)
        self.off = off
        self.asked: list[tuple[list[tuple[int, ...]], list[str]]] = []

    def sample(self, prompts: Any, sampling: Sampling, seeds: Any) -> list[Sampled]:
        assert sampling.temperature == 1.0
        self.asked.append(([tuple(prompt) for prompt in prompts], list(seeds)))
        samples = [Sample((*prompt, 3, 4, 5), ((len(prompt), len(prompt) + 3),)) for prompt in prompts]
        rows = [scores.tolist() for scores in self.logprobs(samples)]
        return [Sampled((3, 4, 5), (*row[:2], row[2] + self.off), False) for row in rows]


@pytest.mark.parametrize("dtype", sorted(AGREEMENT))
def test_after_a_publish_fresh_responses_to_the_same_prompts_must_agree(tokenizer, dtype):
    batch = scored(tokenizer, 0.0)
    engine: Any = Drawer(tokenizer, 0.5 * MEAN_AGREEMENT[dtype])
    check_published(engine, batch, dtype, "seed")
    [(prompts, seeds)] = engine.asked
    assert prompts == [item.sample.token_ids[:10] for item in batch[: len(prompts)]]
    assert len(set(seeds)) == len(prompts) > 1
    for off in (2 * AGREEMENT[dtype], -2 * AGREEMENT[dtype], float("nan")):
        stale: Any = Drawer(tokenizer, off)
        with pytest.raises(RunStopped, match="the sampler holds other weights, or prompts"):
            check_published(stale, batch, dtype, "seed")
