"""A small vision-language model with random weights, of the architecture of Qwen2.5-VL, with its own image processor."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
PIXELS = {"min_pixels": 56 * 56, "max_pixels": 84 * 84}


def write_model(folder: Path, tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> Path:
    """Write the model, a tokenizer that knows its tokens for pictures, and the processor; returns the folder."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(_saved(tokenizer, folder / "text"))
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=True) for mark in MARKS])
    start, end, image, video = (tokenizer.convert_tokens_to_ids(mark) for mark in MARKS)
    torch.manual_seed(seed)
    text = {
        "vocab_size": -(-len(tokenizer) // 64) * 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 4096,
        "initializer_range": 0.2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 32,
        "fullatt_block_indexes": [1],
        "window_size": 56,
        "initializer_range": 0.2,
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        vision_start_token_id=start,
        vision_end_token_id=end,
        image_token_id=image,
        video_token_id=video,
        tie_word_embeddings=True,
    )
    Qwen2_5_VLForConditionalGeneration(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**PIXELS).save_pretrained(folder)
    return folder


def _saved(tokenizer: PreTrainedTokenizerFast, folder: Path) -> Path:
    tokenizer.save_pretrained(folder)
    return folder
