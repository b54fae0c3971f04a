"""Low-rank adapters (LoRA, by peft) inside a Hugging Face model: what is trained instead of the weights.

With the adapters off the model is the policy that the run started from, so it is its own reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seed_opd.errors import UserError

_NAME = "default"


@dataclass(frozen=True, slots=True)
class Adapters:
    """Their shape: `rank`, the scale `alpha` / rank, the names of the layers that get one, and the seed of their start."""

    rank: int
    alpha: int
    targets: Sequence[str] | str
    seed: int


def add_adapters(model: PreTrainedModel, adapters: Adapters) -> None:
    """Put adapters into the model, in float32, and freeze everything else; they change nothing before they are trained."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise UserError("model.lora: adapters need the package peft; run pip install 'seed-opd[lora]'.") from error
    targets = adapters.targets if isinstance(adapters.targets, str) else list(adapters.targets)
    torch.manual_seed(adapters.seed)
    try:
        inject_adapter_in_model(LoraConfig(r=adapters.rank, lora_alpha=adapters.alpha, target_modules=targets), model)
    except ValueError as error:
        raise UserError(f"model.lora.targets: {targets!r} does not fit {type(model).__name__}: {error}") from error
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """The model as it was before its adapters were trained."""
    layers = _adapted(model).values()
    for layer in layers:
        layer.enable_adapters(False)
    yield
    for layer in layers:
        layer.enable_adapters(True)


def has_adapters(model: nn.Module) -> bool:
    return any(".lora_" in name for name, _ in model.named_parameters())


def merged(model: nn.Module, whole: Callable[[Tensor], Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The model's weights by name, each adapter added, in float32, to what it adapts; `whole` joins a tensor in pieces."""
    layers = _adapted(model)
    for name, parameter in model.named_parameters():
        owner, _, field = name.rpartition(".base_layer.")
        if ".lora_" in name:
            continue
        weight = whole(parameter.detach())
        if owner and field == "weight":
            down, up = (whole(part[_NAME].weight.detach()) for part in (layers[owner].lora_A, layers[owner].lora_B))
            weight = weight.float() + up.float() @ down.float() * layers[owner].scaling[_NAME]
        yield (f"{owner}.{field}" if owner else name), weight


def _adapted(model: nn.Module) -> dict[str, Any]:
    """The layers that have an adapter, by name."""
    return {name: module for name, module in model.named_modules() if hasattr(module, "lora_A")}
