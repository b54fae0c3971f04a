"""Small things that many tests share: a tokenizer made of bytes and a model with random weights."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from seed_opd.training.pretrain import make_tokenizer
from toys import random_model

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of bytes, with the chat template and the tags of the tiny policy."""
    return make_tokenizer(iter([""]))


@pytest.fixture()
def model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    return random_model(len(tokenizer))
