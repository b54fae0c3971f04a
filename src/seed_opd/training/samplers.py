"""From a config to a sampler outside the trainer: vLLM beside it, or as a server (extra `vllm`)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedTokenizerBase

from seed_opd.config import EngineConfig
from seed_opd.errors import UserError
from seed_opd.policy.engine import Sampler
from seed_opd.policy.vllm_answers import Bounds
from seed_opd.policy.vllm_sampler import VllmSampler, start
from seed_opd.policy.vllm_server import Client, VllmServerSampler
from seed_opd.processes import count, rank

_ADVICE = "use engine.sampler=torch here"


def make_sampler(
    settings: EngineConfig, model: Path | str, tokenizer: PreTrainedTokenizerBase, dtype: str, device: str
) -> Sampler | None:
    """The sampler that the config names; None for the torch engine's own.

    `dtype` and `device` are the trainer's. vLLM has the weights of its own model folder until the first `publish`. Raises
    UserError where it is not installed, has no GPU, or does not answer.
    """
    if settings.sampler == "torch":
        return None
    if find_spec("vllm") is None:
        raise UserError(
            f"engine.sampler: {settings.sampler!r} needs vLLM, which is not installed; install the extra `vllm` as "
            f"docs/engines.md says, or {_ADVICE}."
        )
    if not device.startswith("cuda"):
        raise UserError(
            f"engine.sampler: vLLM takes its weights from GPU memory, and the model is on {device!r}; {_ADVICE}."
        )
    end_ids = (tokenizer.eos_token_id,)
    if settings.sampler == "vllm":
        return _beside(settings, model, end_ids, dtype, device)
    return _server(settings, model, end_ids, dtype, device)


def _beside(settings: EngineConfig, model: Path | str, end_ids: tuple[int, ...], dtype: str, device: str) -> VllmSampler:
    if count() > 1:
        raise UserError(
            "engine.sampler: 'vllm' samples for one training process; start vLLM as a server and use 'vllm-server'."
        )
    if torch.device(device).index not in (None, 0):
        raise UserError(
            f"model.device: vLLM runs on the first visible GPU, and the model is on {device!r}; choose the GPU with "
            "CUDA_VISIBLE_DEVICES and model.device=cuda."
        )
    from seed_opd.policy.vllm_weights import IpcPush

    llm = start(model, dtype, settings.options)
    bounds = Bounds(end_ids, llm.model_config.get_vocab_size(), llm.model_config.max_model_len)
    return VllmSampler(llm, IpcPush(llm, getattr(torch, dtype), torch.device(device)), bounds)


def _server(
    settings: EngineConfig, model: Path | str, end_ids: tuple[int, ...], dtype: str, device: str
) -> VllmServerSampler:
    from seed_opd.policy.vllm_weights import NcclPush

    if settings.options:
        raise UserError("engine.options: they are arguments of vLLM in this process; give a server its own at its start.")
    client = Client(settings.url, settings.api_key_variable)
    vocab_size = AutoConfig.from_pretrained(model).get_text_config().vocab_size
    bounds = Bounds(end_ids, vocab_size, client.connect().max_model_len)
    push = NcclPush(client, getattr(torch, dtype), torch.device(device), rank())
    return VllmServerSampler(client, push, bounds)
