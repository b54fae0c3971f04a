"""From a config to the engine of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from seed_opd.config import Config
from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Engine
from seed_opd.policy.loading import Placement, load_policy, load_reference, load_tokenizer
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.processes import count, join
from seed_opd.training.samplers import make_sampler


def make_engine(config: Config, model: Path | str, with_reference: bool) -> Engine:
    """The engine that the config names, holding a model; `with_reference` where its start is asked for later on."""
    return _tinker_engine(config, model) if config.engine.kind == "tinker" else _torch_engine(config, model, with_reference)


def _tinker_engine(config: Config, model: Path | str) -> Engine:
    from seed_opd.policy.tinker_engine import TinkerEngine  # its SDK is an extra

    return TinkerEngine.connect(
        model,
        url=config.engine.url,
        api_key_variable=config.engine.api_key_variable,
        adapters=_adapters(config),
        betas=config.optimizer.betas,
        weight_decay=config.optimizer.weight_decay,
        max_grad_norm=config.optimizer.max_grad_norm,
    )


def _torch_engine(config: Config, model: Path | str, with_reference: bool) -> TorchEngine:
    tokenizer = load_tokenizer(model)
    place = _placement(config)
    adapters = _adapters(config)
    return TorchEngine(
        load_policy(model, place, adapters),
        tokenizer,
        reference=load_reference(model, _of_reference(config, place)) if with_reference and adapters is None else None,
        sampler=make_sampler(config.engine, model, tokenizer, config.model.dtype, place.device),
        betas=config.optimizer.betas,
        weight_decay=config.optimizer.weight_decay,
        max_grad_norm=config.optimizer.max_grad_norm,
        micro_batch_tokens=config.model.micro_batch_tokens,
    )


def _placement(config: Config) -> Placement:
    settings, device = config.model, _device(config.model.device)
    sharded = count() > 1 or settings.dtype != "float32" or settings.offload != "none"
    return Placement(
        device=join(device) if sharded else device,
        dtype=settings.dtype,
        sharded=sharded,
        offload=settings.offload == "training",
        logits_chunk=settings.logits_chunk,
        recompute=settings.recompute,
        compile=settings.compile,
        image_options=settings.image_options,
    )


def _of_reference(config: Config, place: Placement) -> Placement:
    """The reference is only scored: nothing to recompute, and it is the first to leave a GPU that is too small."""
    return replace(place, offload=config.model.offload != "none", recompute=False, compile=False)


def _adapters(config: Config) -> Adapters | None:
    lora = config.model.lora
    return None if lora is None else Adapters(lora.rank, lora.alpha, lora.targets, config.seed)


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name
