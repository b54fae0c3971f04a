"""A model with random weights that vLLM's CPU kernels can run. vLLM and its child processes read the settings here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "policy"))  # the conformance suite
os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"  # vLLM's workers import file_transfer
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def saved(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that vLLM starts from."""
    path = tmp_path_factory.mktemp("model")
    random_model(len(tokenizer)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture()
def model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    return random_model(len(tokenizer))


def random_model(vocabulary: int) -> Qwen3ForCausalLM:
    """Some 130,000 random weights, with the smallest attention head that vLLM has on a CPU."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    return Qwen3ForCausalLM(config).eval()
