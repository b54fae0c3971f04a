"""From a model folder to a language model that is ready to be sampled, scored and trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from seed_opd.errors import UserError
from seed_opd.policy.adapters import Adapters, add_adapters
from seed_opd.policy.language_model import LanguageModel
from seed_opd.policy.pictures import Eye
from seed_opd.policy.sharding import hold_whole, shard, take_weights
from seed_opd.processes import is_main

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model computes and how it is kept.

    `sharded`: in pieces over the processes, computing in `dtype`; needed for more than one process and for any `dtype` but
    float32. `offload`: the pieces stay in CPU memory.
    """

    device: str = "cpu"
    dtype: str = "float32"
    sharded: bool = False
    offload: bool = False
    logits_chunk: int = 1024
    recompute: bool = False
    compile: bool = False
    image_options: Mapping[str, Any] = field(default_factory=dict)


def load_policy(path: Path | str, place: Placement, adapters: Adapters | None = None) -> LanguageModel:
    """The model that is trained: its weights in float32, or its adapters beside frozen weights in the format of `place`."""
    return _load(path, place, DTYPES[place.dtype] if adapters else torch.float32, adapters)


def load_reference(path: Path | str, place: Placement) -> LanguageModel:
    """A frozen model in the format of `place`, to compare with."""
    model = _load(path, place, DTYPES[place.dtype], None)
    model.requires_grad_(False)
    return model


def load_tokenizer(path: Path | str) -> PreTrainedTokenizerBase:
    """The tokenizer of a model; raises UserError where it is missing or has no chat template."""
    _check_folder(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if tokenizer.chat_template is None:
        raise UserError(
            f"model.path: the tokenizer of {str(path)!r} has no chat template; use an instruct model or add one."
        )
    return tokenizer


def load_model(path: Path | str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A Hugging Face causal or vision-language model in CPU memory; weights come from safetensors only.

    A `Path` is a folder on this machine, a string may be a name on the hub too. Raises UserError where it is missing.
    """
    _check_folder(path)
    disable_progress_bar()  # a bar per loaded folder would drown our own
    try:
        kind = _kind(AutoConfig.from_pretrained(path))
        model: PreTrainedModel = kind.from_pretrained(path, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return model


def _load(path: Path | str, place: Placement, dtype: torch.dtype, adapters: Adapters | None) -> LanguageModel:
    if not place.sharded:
        model = _prepared(path, load_model(path, dtype), place, adapters)
        model.to(place.device)
    else:
        # only the main process reads the weights; each process takes its pieces of them
        source = _prepared(path, load_model(path, dtype), place, adapters) if is_main() else None
        model = _prepared(path, _without_values(path, dtype), place, adapters)
        shard(model, model.layers(), DTYPES[place.dtype], place.device, place.offload)
        model.to_empty(device="cpu" if place.offload else place.device)
        take_weights(model, source)
        _begin(model)
    model.check_head()
    return model


def _prepared(path: Path | str, model: PreTrainedModel, place: Placement, adapters: Adapters | None) -> LanguageModel:
    if adapters is not None:
        add_adapters(model, adapters)
    prepared = LanguageModel(model, place.logits_chunk, _load_eye(path, model, place.image_options))
    if place.recompute:
        prepared.recompute()
    if place.compile:
        prepared.compile_layers()
    return prepared


def _without_values(path: Path | str, dtype: torch.dtype) -> PreTrainedModel:
    config = AutoConfig.from_pretrained(path)
    with torch.device("meta"):
        model: PreTrainedModel = _kind(config).from_config(config, dtype=dtype)
    return model


def _kind(config: PreTrainedConfig) -> Any:
    return AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM


def _load_eye(path: Path | str, model: PreTrainedModel, options: Mapping[str, Any]) -> Eye | None:
    """What turns pictures into tokens for a model that sees, as far as its architecture counts positions as Qwen's do."""
    if not Eye.fits(model):
        return None
    try:
        return Eye.of(model, AutoImageProcessor.from_pretrained(path, backend="pil", **options))
    except (OSError, ValueError, ImportError) as error:
        raise _unreadable(path, error) from error


def _begin(model: LanguageModel) -> None:
    """FSDP wants its first forward pass through the outermost module; later ones may go through any."""
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.model.device)
    with torch.no_grad():
        model(ids, torch.tensor([0]), torch.tensor([1]))
    hold_whole(model)


def _check_folder(path: Path | str) -> None:
    if isinstance(path, Path) and not path.is_dir():  # transformers would look for its name on the hub
        raise UserError(f"model.path: {str(path)!r} cannot be loaded: there is no such folder.")


def _unreadable(path: Path | str, error: Exception) -> UserError:
    reason = " ".join(str(error).split())
    return UserError(f"model.path: {str(path)!r} cannot be loaded as a causal language model: {reason}")
