"""The vLLM sampler in process against a real vLLM on the CPU: the conformance suite, and what is vLLM's alone.

Everything runs as on a GPU, but for the way that weights take: a file in place of CUDA IPC.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conformance import PROMPTS, Conformance, learn
from file_transfer import FilePush, LostPush
from real import check_grammar, check_prefix_cache, check_temperatures, scored, trainer

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Engine, Sampling
from seed_opd.policy.loading import Placement
from seed_opd.policy.vllm_answers import Bounds
from seed_opd.policy.vllm_sampler import VllmSampler, start
from seed_opd.policy.vllm_weights import InProcess
from seed_opd.training.guards import check_first_step, check_published

LENGTH = 512
OPTIONS = {"max_model_len": LENGTH, "enforce_eager": True, "worker_extension_cls": "file_transfer.Extension"}


@pytest.fixture(scope="module")
def llm(saved: Path) -> Iterator[Any]:
    llm = start(saved, "float32", OPTIONS, transfer="file")
    yield llm
    llm.llm_engine.engine_core.shutdown()


@pytest.fixture()
def sampler(llm: Any, tokenizer: Any, tmp_path: Path) -> VllmSampler:
    bounds = Bounds((tokenizer.eos_token_id,), llm.model_config.get_vocab_size(), llm.model_config.max_model_len)
    return VllmSampler(llm, FilePush(InProcess(llm), tmp_path), bounds)


class TestVllm(Conformance):
    @pytest.fixture(autouse=True)
    def _with(self, sampler: VllmSampler) -> None:
        self.sampler = sampler

    def make(self, folder: Path) -> Engine:
        return trainer(folder, self.sampler)


class TestWeightsInPieces(TestVllm):
    """FSDP2 in a group of one gathers each weight before it is sent."""

    def make(self, folder: Path) -> Engine:
        return trainer(folder, self.sampler, Placement(sharded=True))


class TestAdapters(TestVllm):
    """vLLM gets them as part of the weights that they adapt."""

    trains_all_weights = False

    def make(self, folder: Path) -> Engine:
        return trainer(folder, self.sampler, adapters=Adapters(8, 16, "all-linear", seed=0))


def test_log_probs_are_those_at_the_temperature(sampler, saved):
    check_temperatures(trainer(saved, sampler))


def test_answers_under_the_grammar_parse(sampler, saved):
    check_grammar(trainer(saved, sampler))


def test_a_growing_conversation_after_a_publish_reads_nothing_old(sampler, saved):
    check_prefix_cache(trainer(saved, sampler))


def test_the_guards_stop_a_run_whose_weights_do_not_arrive(sampler, saved, tmp_path):
    engine = trainer(saved, sampler)
    batch = scored(engine)
    check_first_step(engine, batch, "float32")
    check_published(engine, batch, "float32", "seed")
    engine.sampler._push = LostPush(sampler._push.client, tmp_path)
    learn(engine, 1)
    with pytest.raises(RunStopped, match="disagree on a token"):
        check_published(engine, batch, "float32", "seed")
    with pytest.raises(RunStopped, match="disagree on a token"):
        check_first_step(engine, scored(engine), "float32")


def test_weights_of_someone_else_are_noticed(sampler, saved, llm):
    engine = trainer(saved, sampler)
    llm.update_weight_version("another")
    with pytest.raises(RunStopped, match="with the weights another and not with"):
        engine.sample(PROMPTS, Sampling(1.0, 4), list("abcd"))


def test_what_does_not_fit_is_refused_before_it_is_cut(sampler):
    with pytest.raises(UserError, match=f"max_model_len is {LENGTH}"):
        sampler.sample([[5] * (LENGTH - 3)], Sampling(1.0, 4), ["a"])


def test_a_failure_of_vllm_is_named(sampler):
    with pytest.raises(RunStopped, match="vLLM's responses: "):
        sampler.sample([[10**7]], Sampling(1.0, 4), ["a"])


def test_log_probs_in_numbers(sampler, saved, capsys):
    """Not a test of its own: the largest differences over many tokens, to be read with -s."""
    engine = trainer(saved, sampler)
    rows = scored(engine, count=64, tokens=64)
    gaps = torch.cat([(a - item.old).abs() for a, item in zip(engine.logprobs([r.sample for r in rows]), rows, strict=True)])
    with capsys.disabled():
        print(f"\n{len(gaps)} tokens: largest difference {gaps.max():.1e} nats, mean {gaps.mean():.1e}")
    assert gaps.max() < 1e-4
