"""Small vision-language models with random weights, of the architectures of Qwen2.5-VL and Qwen3-VL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
TOKENS = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
}
VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": 32,
    "initializer_range": 0.2,
}
OWN: dict[str, dict[str, Any]] = {
    "qwen2_5_vl": {"text": {}, "vision": {"fullatt_block_indexes": [1], "window_size": 56, "patch_size": 14}},
    "qwen3_vl": {
        "text": {"head_dim": 16},
        "vision": {"deepstack_visual_indexes": [0], "num_position_embeddings": 64, "patch_size": 16},
    },
}
SIDE = (4, 6)
"""A picture has from so many to so many patches on a side."""


def write_model(folder: Path, tokenizer: PreTrainedTokenizerFast, kind: str = "qwen2_5_vl", seed: int = 0) -> Path:
    """Write the model, a tokenizer that knows its tokens for pictures, and the processor; returns the folder."""
    tokenizer.save_pretrained(folder / "text")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "text")
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=True) for mark in MARKS])
    ids = {name: tokenizer.convert_tokens_to_ids(mark) for name, mark in zip(TOKENS, MARKS, strict=True)}
    torch.manual_seed(seed)
    text = TEXT | OWN[kind]["text"] | {"vocab_size": -(-len(tokenizer) // 64) * 64}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    vision = VISION | OWN[kind]["vision"]
    config = AutoConfig.for_model(kind, text_config=text, vision_config=vision, tie_word_embeddings=True, **ids)
    AutoModelForImageTextToText.from_config(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    least, most = ((side * vision["patch_size"]) ** 2 for side in SIDE)
    Qwen2VLImageProcessorPil(patch_size=vision["patch_size"], min_pixels=least, max_pixels=most).save_pretrained(folder)
    return folder
