"""The torch engine against the conformance suite: plain, with all that saves memory, with adapters, in bfloat16."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conformance import SAMPLES, Conformance, learn, plain_logprobs

from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Engine
from seed_opd.policy.loading import Placement, load_policy, load_reference, load_tokenizer
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.processes import join


def engine_on(folder: Path, place: Placement, adapters: Adapters | None = None, micro_batch_tokens: int = 16384) -> Engine:
    if place.sharded:
        join("cpu")
    return TorchEngine(
        load_policy(folder, place, adapters),
        load_tokenizer(folder),
        reference=None if adapters else load_reference(folder, place),
        micro_batch_tokens=micro_batch_tokens,
    )


class TestPlain(Conformance):
    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement())


class TestSavingMemory(Conformance):
    """Small micro-batches, logits three at a time, recomputed layers."""

    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(logits_chunk=3, recompute=True), micro_batch_tokens=16)


class TestInPieces(Conformance):
    """FSDP2 in a group of one, its pieces in CPU memory."""

    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(sharded=True, offload=True, recompute=True, logits_chunk=4))


class TestAdapters(Conformance):
    trains_all_weights = False

    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(), Adapters(8, 16, "all-linear", seed=0))


class TestAdaptersInPieces(TestAdapters):
    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(sharded=True), Adapters(8, 16, ("q_proj", "v_proj"), seed=0))


class TestBfloat16(Conformance):
    """It computes with three digits, and its weights keep seven."""

    tolerance = 0.15
    trains_all_weights = False

    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(dtype="bfloat16", sharded=True))

    def test_steps_too_small_for_bfloat16_add_up(self, engine):
        before = {name: weight.detach().clone() for name, weight in engine._trained.items()}
        for _ in range(3):
            learn_little(engine)
        for name, weight in engine._trained.items():
            assert float((weight.detach() - before[name]).full_tensor().abs().max()) > 1e-6


def learn_little(engine: Engine) -> None:
    """A step of a millionth, which is lost in bfloat16 beside a weight of a tenth."""
    tokens = SAMPLES[0].response_tokens
    weight = {"weight": torch.full((tokens,), 1.0 / tokens)}
    engine.train(SAMPLES[:1], [weight], lambda log_probs, signals: {"likelihood": -(log_probs * signals["weight"]).sum()})
    engine.step(1e-6)
    engine.publish()


@pytest.mark.parametrize("budget", [1, 16, 64])
def test_micro_batches_do_not_change_the_gradient(model, tokenizer, tmp_path, budget):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    whole, cut = (engine_on(tmp_path, Placement(), micro_batch_tokens=tokens) for tokens in (4096, budget))
    for engine in (whole, cut):
        learn(engine, 1)
    for one, two in zip(whole.logprobs(SAMPLES), cut.logprobs(SAMPLES), strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=0)


def test_adapters_are_small_and_change_nothing_at_first(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    engine = engine_on(tmp_path, Placement(), Adapters(2, 4, "all-linear", seed=0))
    described = engine.describe()
    assert 0 < described["trained_parameters"] < described["parameters"] / 5
    torch.testing.assert_close(engine.logprobs(SAMPLES)[0], plain_logprobs(model, SAMPLES[0]).detach(), atol=1e-5, rtol=0)


@pytest.mark.slow
class TestCompiled(Conformance):
    def make(self, folder: Path) -> Engine:
        return engine_on(folder, Placement(compile=True))
