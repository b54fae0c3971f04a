"""The sampler against the plainest way to do the same: one row, no cache, one whole forward pass per token."""

from __future__ import annotations

import random

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from seed_opd.errors import UserError
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


@pytest.fixture()
def read(model):
    """Shapes (rows, tokens) of what the model has read so far."""
    shapes: list[tuple[int, ...]] = []
    model.model.embed_tokens.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(inputs[0].shape)))
    return shapes


def test_the_cache_is_used_and_others_keep_theirs(model, read):
    kept, sampling = TorchSampler(model, [END]), Sampling(1.0, 4)
    prompts = {"x": [*range(20, 60)], "y": [*range(60, 100)]}
    first = kept.sample(list(prompts.values()), sampling, ["a", "b"], keys=["x", "y"])
    after = {key: [*prompt, *one.ids, 3, 4] for (key, prompt), one in zip(prompts.items(), first, strict=True)}
    for key in ("y", "x"):  # the one that paused is still there when its turn comes
        read.clear()
        again = kept.sample([after[key]], sampling, ["c"], keys=[key])[0]
        assert read[0] == (1, 2)  # the token drawn last and a new one, not the forty before; the newest is read alone
        assert list(again.ids) == naive(model, after[key], "c", sampling)[0]


@pytest.mark.parametrize(
    "drop", [lambda s: s.publish(), lambda s: s.forget(), lambda s: s.sample([[1, 2]], Sampling(), ["z"])]
)
def test_caches_go_with_the_weights_and_with_the_conversations(model, read, drop):
    kept, sampling = TorchSampler(model, [END]), Sampling(1.0, 4)
    kept.sample([[*range(20, 60)]], sampling, ["a"], keys=["x"])
    drop(kept)
    read.clear()
    kept.sample([[*range(20, 60), 9, 9]], sampling, ["b"], keys=["x"])
    assert read[0] == (1, 41)


def test_equal_prompts_are_read_once(model, read):
    prompts, seeds = [[*range(30)], [*range(50, 90)], [*range(30)], [*range(30)]], ["a", "b", "c", "d"]
    sampled = TorchSampler(model, [END]).sample(prompts, Sampling(1.0, 8), seeds, keys=seeds)
    assert read[0] == (2, 39) and {rows for rows, tokens in read if tokens > 1} == {2}
    for one, prompt, seed in zip(sampled, prompts, seeds, strict=True):
        assert list(one.ids) == naive(model, prompt, seed, Sampling(1.0, 8))[0]


@pytest.mark.parametrize("changed", [[1, 9, 3, 4, 5, 6, 8, 9, 10], [1, 2], [1]])
def test_a_changed_history_is_read_from_where_it_differs(model, read, changed):
    kept, sampling = TorchSampler(model, [END]), Sampling(1.0, 4)
    kept.sample([[1, 2, 3, 4]], sampling, ["a"], keys=["x"])
    read.clear()
    again = kept.sample([changed], sampling, ["b"], keys=["x"])
    assert read[0] == (1, max(1, len(changed) - 2))
    assert list(again[0].ids) == naive(model, changed, "b", sampling)[0]


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


class Framed:
    """A constraint that forces a beginning, then leaves two tokens to choose."""

    def __init__(self, vocabulary, beginning):
        self.vocabulary, self.beginning, self.taken = vocabulary, beginning, {}

    def mask(self, rows):
        masks = torch.ones(len(rows), self.vocabulary, dtype=torch.bool)
        for mask, row in zip(masks, rows, strict=True):
            if self.taken.get(row, 0) < len(self.beginning):
                mask[:] = False
                mask[self.beginning[self.taken.get(row, 0)]] = True
        return masks

    def accept(self, row, token_id):
        self.taken[row] = self.taken.get(row, 0) + 1
        return self.taken[row] == len(self.beginning) + 2


@pytest.mark.parametrize("most", [2, 3, 4, 20])
def test_a_forced_beginning_is_read_with_the_prompt(model, read, most):
    prompts, frame = prompts_of(5), [40, 41, 42]
    sampled = TorchSampler(model, [END]).sample(
        prompts, Sampling(0.0, most), ["s"] * 5, constraint=Framed(model.config.vocab_size, frame)
    )
    assert len(read) == (1 if most > 3 else 0) + max(0, min(most, 5) - 3)
    for one, prompt in zip(sampled, prompts, strict=True):
        expected, log_probs = naive(model, [*prompt, *frame], "s", Sampling(0.0, 2))
        assert list(one.ids) == [*frame, *expected][:most] and one.finished == (most >= 5)
        assert one.log_probs == pytest.approx([0.0, 0.0, 0.0, *log_probs][:most], abs=1e-4)


def test_other_attention_than_torchs(model):
    model.set_attn_implementation("eager")
    sampling, prompts = Sampling(1.0, 8), prompts_of(4)
    sampled = TorchSampler(model, [END]).sample(prompts, sampling, list("abcd"))
    for one, prompt, seed in zip(sampled, prompts, "abcd", strict=True):
        assert list(one.ids) == naive(model, prompt, seed, sampling)[0]


def test_layers_with_sliding_windows(model):
    kinds = ["full_attention", "sliding_attention"]
    settings = {**model.config.to_dict(), "use_sliding_window": True, "sliding_window": 5, "layer_types": kinds}
    model = Qwen3ForCausalLM(Qwen3Config.from_dict(settings)).eval()
    sampling, prompts = Sampling(1.0, 12), prompts_of(4)
    sampled = TorchSampler(model, [END]).sample(prompts, sampling, list("abcd"))
    for one, prompt, seed in zip(sampled, prompts, "abcd", strict=True):
        assert list(one.ids) == naive(model, prompt, seed, sampling)[0]


def test_layers_without_keys_and_values_are_refused(model):
    model.config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(UserError, match="linear_attention"):
        TorchSampler(model, [END])


def test_frequencies_follow_the_distribution(model):
    sampled = TorchSampler(model, [END]).sample([[5, 6, 7]] * 4000, Sampling(1.0, 1), [str(n) for n in range(4000)])
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor([one.ids[0] for one in sampled]), minlength=len(expected)) / 4000
    deviation = (expected * (1 - expected) / 4000).sqrt()
    assert ((counts - expected).abs() <= 5 * deviation + 1e-3).all()
