"""The sampler against the plainest way to do the same: one row, no cache, one whole forward pass per token."""

from __future__ import annotations

import random

import pytest
import torch

from seed_opd.policy.engine import Sampling
from seed_opd.policy.sampler import TorchSampler

END = 7


def naive(model, prompt, seed, sampling):
    """Draw one response without any batching or caching, from the same random numbers."""
    ids, drawn, log_probs, uniforms = list(prompt), [], [], random.Random(seed)
    for _ in range(sampling.max_tokens):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1].float()
        scores = torch.log_softmax(logits / (sampling.temperature or 1.0), dim=-1)
        if sampling.temperature:
            cumulative = scores.double().exp().cumsum(0)
            token = int(torch.searchsorted(cumulative, uniforms.random() * cumulative[-1:], right=True)[0])
        else:
            token = int(scores.argmax())
        ids.append(token)
        drawn.append(token)
        log_probs.append(float(scores[token]))
        if token == END:
            break
    return drawn, log_probs


def prompts_of(count, seed=0):
    rng = random.Random(seed)
    return [[rng.randrange(200) for _ in range(rng.randrange(1, 30))] for _ in range(count)]


@pytest.mark.parametrize("temperature", [0.0, 0.4, 1.0])
def test_batched_equals_naive(model, temperature):
    sampling, prompts = Sampling(temperature, 12), prompts_of(6)
    seeds = [f"s{number}" for number in range(6)]
    sampled = TorchSampler(model, [END]).sample(prompts, sampling, seeds)
    for one, prompt, seed in zip(sampled, prompts, seeds, strict=True):
        drawn, log_probs = naive(model, prompt, seed, sampling)
        assert list(one.ids) == drawn
        assert one.finished == (drawn[-1] == END)
        assert one.log_probs == pytest.approx(log_probs, abs=1e-4)


def test_a_growing_conversation_equals_reading_it_anew(model):
    sampling, conversations = Sampling(1.0, 9), prompts_of(8)
    kept, rng = TorchSampler(model, [END]), random.Random(1)
    for turn in range(4):
        seeds = [f"{turn}/{number}" for number in range(len(conversations))]
        cached = kept.sample(conversations, sampling, seeds, keys=list(range(len(conversations))))
        fresh = TorchSampler(model, [END]).sample(conversations, sampling, seeds)
        assert [one.ids for one in cached] == [one.ids for one in fresh]
        for a, b in zip(cached, fresh, strict=True):
            assert a.log_probs == pytest.approx(b.log_probs, abs=1e-4)
        conversations = [
            [*prompt, *one.ids, *(rng.randrange(200) for _ in range(rng.randrange(1, 9)))]
            for prompt, one in zip(conversations, cached, strict=True)
        ]


def test_the_cache_is_used_and_finished_conversations_leave(model):
    kept, sampling = TorchSampler(model, [END]), Sampling(1.0, 4)
    prompts = [[*range(20, 60)], [*range(60, 100)]]
    first = kept.sample(prompts, sampling, ["a", "b"], keys=["x", "y"])
    read = []
    handle = model.model.embed_tokens.register_forward_hook(lambda module, inputs, output: read.append(inputs[0].shape[1]))
    kept.sample([[*prompts[1], *first[1].ids, 3, 4]], sampling, ["c"], keys=["y"])
    handle.remove()
    assert read[0] <= 1 + 2  # the token drawn last and the two new ones, not the forty before
    assert set(kept._kept) == {"y"}


def test_a_changed_history_is_read_anew(model):
    kept, sampling = TorchSampler(model, [END]), Sampling(1.0, 4)
    kept.sample([[1, 2, 3, 4]], sampling, ["a"], keys=["x"])
    again = kept.sample([[1, 9, 3, 4, 5, 6, 8, 9, 10]], sampling, ["b"], keys=["x"])
    assert list(again[0].ids) == naive(model, [1, 9, 3, 4, 5, 6, 8, 9, 10], "b", sampling)[0]


def test_results_do_not_depend_on_the_rest_of_the_batch(model):
    sampling, prompts = Sampling(1.0, 10), prompts_of(10, seed=3)
    together = TorchSampler(model, [END]).sample(prompts, sampling, [str(n) for n in range(10)])
    alone = [TorchSampler(model, [END]).sample([p], sampling, [str(n)])[0] for n, p in enumerate(prompts)]
    assert [one.ids for one in together] == [one.ids for one in alone]


class OnlyEven:
    """A constraint with even tokens alone, complete after three of them."""

    def __init__(self, vocabulary):
        self.allowed = torch.arange(vocabulary) % 2 == 0
        self.taken = {}

    def mask(self, rows):
        return self.allowed.expand(len(rows), -1)

    def accept(self, row, token_id):
        self.taken[row] = self.taken.get(row, 0) + 1
        return self.taken[row] == 3


def test_a_constraint_holds_and_ends_a_response(model):
    constraint = OnlyEven(model.config.vocab_size)
    sampled = TorchSampler(model, [END]).sample(prompts_of(5), Sampling(1.0, 20), ["s"] * 5, constraint=constraint)
    assert all(token % 2 == 0 for one in sampled for token in one.ids)
    assert [len(one.ids) for one in sampled] == [3] * 5 and all(one.finished for one in sampled)


def test_frequencies_follow_the_distribution(model):
    sampled = TorchSampler(model, [END]).sample([[5, 6, 7]] * 4000, Sampling(1.0, 1), [str(n) for n in range(4000)])
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor([one.ids[0] for one in sampled]), minlength=len(expected)) / 4000
    deviation = (expected * (1 - expected) / 4000).sqrt()
    assert ((counts - expected).abs() <= 5 * deviation + 1e-3).all()
