"""Small things that many tests share: a tokenizer made of bytes and a model with random weights."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from seed_opd.training.pretrain import END, PAD, START, TEMPLATE

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of 267 tokens with the chat template and the tags of the tiny policy."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=259, special_tokens=[PAD, START, END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([""], trainer)
    made.add_tokens([AddedToken(tag, normalized=False) for tag in ("<think>", "</think>", "<action>", "</action>")])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False)
    fast.chat_template = TEMPLATE
    return fast


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
