"""The config's sampler, where there is no GPU and no vLLM: what is missing is said, with the way out."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any

import pytest

import fake_vllm
from seed_opd.config import EngineConfig
from seed_opd.errors import UserError
from seed_opd.training import samplers
from seed_opd.training.samplers import make_sampler

TOKENIZER: Any = SimpleNamespace(eos_token_id=7)


def make(device: str = "cuda", **settings: Any) -> Any:
    return make_sampler(EngineConfig(**settings), "folder", TOKENIZER, "bfloat16", device)


@pytest.fixture()
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vllm.install(monkeypatch)
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "0")  # so that it is as before afterwards
    monkeypatch.setattr(samplers, "find_spec", lambda name: ModuleSpec(name, None))


def test_the_torch_engine_samples_itself():
    assert make(sampler="torch") is None


@pytest.mark.parametrize("sampler", ["vllm", "vllm-server"])
def test_a_missing_package_is_named(sampler, monkeypatch):
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"engine\.sampler: '{sampler}' needs vLLM, .* the extra `vllm`"):
        make(sampler=sampler)


@pytest.mark.parametrize("sampler", ["vllm", "vllm-server"])
def test_a_cpu_is_refused(vllm, sampler):
    with pytest.raises(UserError, match=r"the model is on 'cpu'; use engine\.sampler=torch"):
        make("cpu", sampler=sampler)


def test_beside_the_trainer(vllm):
    sampler = make(sampler="vllm", options={"gpu_memory_utilization": 0.4})
    assert sampler.llm.arguments["gpu_memory_utilization"] == 0.4 and sampler.llm.arguments["dtype"] == "bfloat16"
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES"):
        make("cuda:1", sampler="vllm")


def test_beside_several_processes_is_refused(vllm, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"'vllm' samples for one training process; .* 'vllm-server'"):
        make(sampler="vllm")


def test_a_server_needs_an_address_and_has_options_of_its_own(vllm):
    with pytest.raises(UserError, match=r"engine\.url: '' is no address"):
        make(sampler="vllm-server")
    with pytest.raises(UserError, match=r"engine\.options: .* give a server its own"):
        make(sampler="vllm-server", url="http://localhost:1", options={"seed": 1})
