"""Small things that many tests share: a tokenizer made of bytes and a model with random weights."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from seed_opd.training.pretrain import make_tokenizer

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of bytes, with the chat template and the tags of the tiny policy."""
    return make_tokenizer(iter([""]))


def random_model(vocabulary: int, seed: int = 0) -> Qwen3ForCausalLM:
    """A Qwen3 of some 20,000 parameters with random weights, large enough that its choices differ."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    return Qwen3ForCausalLM(config).eval()


@pytest.fixture()
def model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    return random_model(len(tokenizer))
