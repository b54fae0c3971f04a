"""The vLLM sampler with a fake vLLM: what it asks, what it makes of the answers, and how it fails.

A real vLLM is asked in tests/vllm_cpu.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import fake_vllm
from fake_vllm import LLM, Output, Request, Span, Value
from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.engine import Sampled, Sampling
from seed_opd.policy.seeds import seed_number
from seed_opd.policy.vllm_answers import SEED_BITS, Bounds
from seed_opd.policy.vllm_sampler import VllmSampler, start

BOUNDS = Bounds(end_ids=(7,), vocab_size=100, max_model_len=50)
PROMPTS = [[5, 6], [9]]
WEIGHTS = {"one": torch.tensor([1.0, 2.0]), "two": torch.tensor([[3.0]])}


class Grammar:
    grammar = 'root ::= "a"'

    def mask(self, rows: Any) -> Any:
        raise AssertionError("vLLM keeps the states itself")

    def accept(self, row: int, token_id: int) -> bool:
        raise AssertionError("vLLM keeps the states itself")


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "0")  # so that it is as before afterwards
    fake_vllm.install(monkeypatch)


@pytest.fixture()
def llm() -> LLM:
    return LLM()


def make(llm: LLM, push: Any = None, timeout: float = 10.0) -> VllmSampler:
    def label(weights: Any, version: str) -> None:
        llm.finish_weight_update(version)

    return VllmSampler(llm, push or label, BOUNDS, timeout=timeout)


def test_tokens_in_tokens_and_log_probs_out(llm):
    sampled = make(llm).sample(PROMPTS, Sampling(0.5, 4), ["a", "b"], keys=[1, 2])
    assert sampled == [Sampled((5, 7), (-0.5, -0.5), True), Sampled((9, 7), (-0.5, -0.5), True)]
    [(_, prompts, parameters, bar)] = llm.calls
    assert prompts == [{"prompt_token_ids": [5, 6]}, {"prompt_token_ids": [9]}] and bar is False
    assert [one.seed for one in parameters] == [seed_number("a", SEED_BITS), seed_number("b", SEED_BITS)]
    assert all(one.temperature == 0.5 and one.max_tokens == 4 and one.structured_outputs is None for one in parameters)


def test_a_constraint_is_a_grammar_for_vllm(llm):
    make(llm).sample(PROMPTS, Sampling(0.0, 4), ["a", "b"], constraint=Grammar())
    assert all(one.structured_outputs.grammar == Grammar.grammar and not one.ignore_eos for one in llm.calls[0][2])


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (Output([5, 7], None), "one log-prob for each token"),
        (Output([5, 7], [{5: Value(-1.0)}]), "one log-prob for each token"),
        (Output([5, 7], [{5: Value(-1.0)}, {6: Value(-1.0)}]), "a log-prob is not a number"),
        (Output([500], [{500: Value(-1.0)}]), "not a number below 100"),
        (Output([5], [{5: Value(float("nan"))}]), "a log-prob is not a number"),
        (Output([5], [{5: Value(-1.0)}], None), "ended for the reason 'None'"),
    ],
)
def test_garbage_stops_the_run(llm, output, sentence):
    llm.answer = lambda prompts: [Request([output]) for _ in prompts]
    with pytest.raises(RunStopped, match=sentence):
        make(llm).sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])


def test_answers_that_are_missing_stop_the_run(llm):
    llm.answer = lambda prompts: []
    with pytest.raises(RunStopped, match="0 answers to 2 prompts"):
        make(llm).sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])


def test_a_dead_engine_is_named(llm):
    def die(prompts: Any) -> Any:
        raise RuntimeError("EngineCore encountered\nan issue")

    llm.answer = die
    with pytest.raises(RunStopped, match="vLLM's responses: RuntimeError: EngineCore encountered an issue"):
        make(llm).sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])


def test_an_engine_that_hangs_is_named(llm):
    let_go = threading.Event()
    llm.answer = lambda prompts: let_go.wait(60)
    with pytest.raises(RunStopped, match=r"vLLM's responses: no answer within 0\.1 seconds"):
        make(llm, timeout=0.1).sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])
    let_go.set()


def test_prompts_that_leave_no_room_are_refused(llm):
    with pytest.raises(UserError, match="max_model_len is 50"):
        make(llm).sample([[1] * 48], Sampling(1.0, 4), ["a"])
    assert llm.calls == []


def test_a_publish_labels_the_weights_and_empties_the_cache(llm):
    sampler = make(llm)
    sampler.publish(lambda: iter(WEIGHTS.items()))
    first = sampler.version
    assert llm.calls == ["finish", "reset_prefix_cache"] and llm.version == first
    sampler.publish(lambda: iter(WEIGHTS.items()))
    assert sampler.version != first
    sampler.sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])


def test_answers_from_other_weights_stop_the_run(llm):
    sampler = make(llm)
    sampler.publish(lambda: iter(WEIGHTS.items()))
    llm.version = "default"
    with pytest.raises(RunStopped, match="with the weights default and not with"):
        sampler.sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])
    llm.answer = lambda prompts: [Request([Output([5], [{5: Value(-1.0)}], "stop", [Span("x"), Span("y")])])] * len(prompts)
    with pytest.raises(RunStopped, match="with the weights x, y and not with"):
        sampler.sample(PROMPTS, Sampling(1.0, 4), ["a", "b"])


def test_a_publish_that_did_not_arrive_stops_the_run(llm):
    llm.takes_labels = False
    with pytest.raises(RunStopped, match=r"did not take the weights .* it names 'default'"):
        make(llm).publish(lambda: iter(WEIGHTS.items()))


def test_a_cache_that_stays_stops_the_run(llm):
    llm.empties = False
    with pytest.raises(RunStopped, match="did not empty its prefix cache"):
        make(llm).publish(lambda: iter(WEIGHTS.items()))


def test_vllm_is_started_for_training():
    llm = start("folder", "bfloat16", {"gpu_memory_utilization": 0.4})
    assert llm.arguments["model"] == "folder" and llm.arguments["gpu_memory_utilization"] == 0.4
    assert llm.arguments["logprobs_mode"] == "processed_logprobs" and llm.arguments["generation_config"] == "vllm"
    assert llm.arguments["weight_transfer_config"] == {"backend": "ipc"}
    with pytest.raises(UserError, match=r"engine\.options: dtype, logprobs_mode cannot be chosen"):
        start("folder", "bfloat16", {"logprobs_mode": "raw_logprobs", "dtype": "float16"})
    with pytest.raises(UserError, match="vLLM does not start with 'broken': no such model"):
        start("broken", "bfloat16", {})


def test_weights_go_to_the_same_gpu_whole_and_in_its_format(llm, monkeypatch):
    from seed_opd.policy.vllm_weights import IpcPush

    monkeypatch.setattr(torch.cuda, "set_device", lambda device: llm.calls.append(("device", device)))
    sampler = make(llm, IpcPush(llm, torch.bfloat16, torch.device("cpu")))
    sampler.publish(lambda: iter(WEIGHTS.items()))
    device, init, *rest = llm.calls
    assert device == ("device", torch.device("cpu")) and init[1]["info"] == "IPCTrainerInitInfo"
    sent = ("update", {"weights": [("one", "torch.bfloat16", 3.0), ("two", "torch.bfloat16", 3.0)]})
    assert rest == ["start", sent, "finish", "reset_prefix_cache"]
    llm.calls.clear()
    trained = WEIGHTS | {"two": torch.tensor([[4.0]])}
    sampler.publish(lambda: iter(trained.items()))
    assert ("update", {"weights": [("one", "torch.bfloat16", 3.0), ("two", "torch.bfloat16", 4.0)]}) in llm.calls
    assert not any(call[0] == "init" for call in llm.calls)


def test_the_buffer_holds_the_largest_weight(llm):
    from seed_opd.policy.vllm_weights import Source

    source = Source(torch.bfloat16, torch.device("cpu"))
    source.weights = lambda: iter({"small": torch.zeros(3), "large": torch.zeros(5, 7)}.items())
    assert source.largest() == 5 * 7 * 2
    assert [(meta.name, meta.shape) for meta in source.metadata] == [("small", (3,)), ("large", (5, 7))]
