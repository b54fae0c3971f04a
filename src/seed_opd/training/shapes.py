"""The shape of a model, from its config alone: what memory depends on. Nothing is downloaded and no weight is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedConfig,
)
from transformers.utils import cached_file

from seed_opd.errors import UserError


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder: sizes of its text part, and all of its parameters; tied embeddings count once.

    `head_norms` says whether queries and keys are normalised by head, which keeps more activations.
    """

    parameters: int
    layer_parameters: int
    """Of one layer."""
    vocabulary: int
    width: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    head_norms: bool

    @property
    def outer_parameters(self) -> int:
        """Those outside the layers: embeddings, output head, last norm, and what is no text part."""
        return self.parameters - self.layers * self.layer_parameters


_QWEN_3B = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
}
_QWEN_3B_EYE = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048}

KNOWN: dict[str, dict[str, Any]] = {
    "Qwen/Qwen2.5-3B-Instruct": {"model_type": "qwen2", **_QWEN_3B},
    "Qwen/Qwen2.5-7B-Instruct": {
        "model_type": "qwen2",
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "Qwen/Qwen3-1.7B": {
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": True,
    },
    "Qwen/Qwen2.5-VL-3B-Instruct": {
        "model_type": "qwen2_5_vl",
        "text_config": _QWEN_3B,
        "vision_config": _QWEN_3B_EYE,
        "tie_word_embeddings": True,
    },
}
"""Models that recipes name, by the sizes in their public config.json, for when that file is not on this machine."""


def config_of(path: Path | str) -> PreTrainedConfig:
    """The config of a model: from its folder or the hub's local cache, else from the table of known models.

    Raises UserError where there is neither.
    """
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        if str(path) in KNOWN:
            return AutoConfig.for_model(**KNOWN[str(path)])
        raise UserError(
            f"model.path: the shape of {str(path)!r} is not known, since its config.json is not on this machine; "
            "fetch at least that file, or name the folder that has it."
        ) from error


def shape_of(config: PreTrainedConfig) -> Shape:
    """Sizes and number of parameters; the model is built without memory for its weights to count them."""
    text = config.get_text_config()
    head_size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    auto = AutoModelForCausalLM if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING else AutoModelForImageTextToText
    with torch.device("meta"):
        model = auto.from_config(config)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return Shape(
        parameters=sum(sizes.values()),
        layer_parameters=sum(size for name, size in sizes.items() if ".layers.0." in name),
        vocabulary=text.vocab_size,
        width=text.hidden_size,
        feed_forward=text.intermediate_size,
        layers=text.num_hidden_layers,
        heads=text.num_attention_heads,
        kv_heads=text.num_key_value_heads,
        head_size=head_size,
        head_norms=any(name.endswith("q_norm.weight") for name in sizes),
    )


def missing_files(path: Path | str) -> list[str]:
    """What of a model is not on this machine: its config, its tokenizer, its weights."""
    wanted = {
        "config.json": ["config.json"],
        "tokenizer": ["tokenizer.json", "tokenizer_config.json"],
        "weights": ["model.safetensors", "model.safetensors.index.json"],
    }
    return [part for part, names in wanted.items() if not any(_is_here(path, name) for name in names)]


def _is_here(path: Path | str, name: str) -> bool:
    if Path(path).is_dir():
        return (Path(path) / name).is_file()
    quiet = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        return cached_file(path, name, local_files_only=True, **quiet) is not None
    except OSError:
        return False
