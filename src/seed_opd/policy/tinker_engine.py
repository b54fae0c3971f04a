"""The engine whose weights live on a server that speaks the Tinker protocol: a hosted service, or SkyRL's on a cluster.

The server trains LoRA adapters over a base model that it was started with. Tokens go out and tokens and log-probs come back;
the tokenizer and the loss are here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, PreTrainedTokenizerBase

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Constraint, Loss, Sampled, Sampling, Signals, components
from seed_opd.policy.loading import load_tokenizer
from seed_opd.policy.pictures import Eye
from seed_opd.policy.samples import Sample
from seed_opd.policy.seeds import seed_number
from seed_opd.policy.tinker_checkpoint import Checkpoint, export_adapter, read_checkpoint, write_checkpoint
from seed_opd.policy.tinker_gradients import Gradients, find_out
from seed_opd.policy.tinker_service import LONGEST_WAIT, TinkerService, grad_norm, targets_of
from seed_opd.processes import count

EPSILON = 1e-8
"""AdamW's, as in the torch engine; the protocol's own default is 1e-12."""


class TinkerEngine:
    """See `policy.engine.Engine`.

    `base_model` is the server's name of the model under the adapters, `start` the server's path of the weights to begin
    with, None for the base model itself; the reference policy is the weights at the start. Micro-batches are the server's
    matter, and `keys` too: it caches prefixes itself, if it does.
    """

    def __init__(
        self,
        service: TinkerService,
        tokenizer: PreTrainedTokenizerBase,
        vocab_size: int,
        *,
        base_model: str,
        rank: int,
        start: str | None = None,
        seed: int = 0,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
    ) -> None:
        self.service = service
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.eye: Eye | None = None  # pictures are not sent
        self.base_model = base_model
        self.rank = rank
        self.start = start
        self._seed = seed
        self._betas = betas
        self._weight_decay = weight_decay
        self._max_grad_norm = max_grad_norm
        self._gradients: Gradients | None = None
        self._start_client: Any = None
        self._saved: str | None = None
        self._steps = self._exports = 0
        self.client = self._client_at_start()
        self.publish()

    @classmethod
    def connect(
        cls,
        model: Path | str,
        *,
        url: str,
        api_key_variable: str | None = None,
        adapters: Adapters | None,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        timeout: float = LONGEST_WAIT,
    ) -> TinkerEngine:
        """Open a session and make a training client. `model` is a folder that this engine saved, or the base model.

        A base model is named as the server names it, and its tokenizer and config must be readable here under that name.
        Raises UserError for what the protocol cannot do, and where something is missing here.
        """
        if count() > 1:
            raise UserError(
                f"engine.kind: a Tinker server trains for one process and not {count()}; start without torchrun."
            )
        wanted = _wanted(adapters)
        saved = read_checkpoint(Path(model))
        base_model = saved.base_model if saved else str(model)
        tokenizer = load_tokenizer(model)
        vocab_size = _vocab_size(base_model)
        return cls(
            TinkerService.connect(url, api_key_variable, timeout=timeout),
            tokenizer,
            vocab_size,
            base_model=base_model,
            rank=saved.rank if saved else wanted.rank,
            start=saved.path if saved else None,
            seed=wanted.seed,
            betas=betas,
            weight_decay=weight_decay,
            max_grad_norm=max_grad_norm,
        )

    def describe(self) -> dict[str, str | int]:
        return {
            "base_model": self.base_model,
            "lora_rank": self.rank,
            "gradients": self._gradients.name if self._gradients else "not measured",
            "tinker": str(self.service.sdk.__version__),
            "torch": torch.__version__,
        }

    # ---- sampling

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seeds: Sequence[str],
        *,
        keys: Sequence[Hashable] | None = None,
        constraint: Constraint | None = None,
    ) -> list[Sampled]:
        """See `Engine.sample`. At temperatures other than 1 the log-probs are what the server takes them to be."""
        if constraint is not None:
            raise UserError(
                "analyzer.constrained: the Tinker protocol samples without a grammar; set analyzer.constrained=false, or "
                "analyzer.kind to rules or remote."
            )
        requests = [
            (self.service.model_input(prompt), self._parameters(sampling, seed))
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        responses = self.service.ask("responses", lambda: [self._sampler.sample(prompt, 1, how) for prompt, how in requests])
        return [self._read(response.sequences[0], sampling) for response in responses]

    def publish(self) -> None:
        self._sampler = self.service.ask("a sampler of the weights", self.client.save_weights_and_get_sampling_client)

    def _parameters(self, sampling: Sampling, seed: str) -> Any:
        return self.service.sdk.types.SamplingParams(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            seed=seed_number(seed, SEED_BITS),
            stop=[self.tokenizer.eos_token_id],
        )

    def _read(self, sequence: Any, sampling: Sampling) -> Sampled:
        ids, log_probs = tuple(int(token) for token in sequence.tokens), sequence.logprobs
        finished = sequence.stop_reason == "stop"
        right = (
            0 < len(ids) <= sampling.max_tokens
            and all(0 <= token < self.vocab_size for token in ids)
            and log_probs is not None
            and len(log_probs) == len(ids)
            and all(math.isfinite(value) for value in log_probs)
            and finished == (ids[-1] == self.tokenizer.eos_token_id)
        )
        if not right:
            raise RunStopped(
                f"the Tinker server gave a response of no use: {len(ids)} tokens of at most {sampling.max_tokens}, "
                f"ended for {str(sequence.stop_reason)[:40]!r}, or without log-probs or its end token; check its version."
            )
        return Sampled(ids, tuple(float(value) for value in log_probs), finished)

    # ---- scoring

    def logprobs(self, samples: Sequence[Sample], reference: bool = False) -> list[Tensor]:
        """See `Engine.logprobs`; from the training side of the server, so true between `step` and `publish` too."""
        client = self._reference() if reference else self.client
        scores = self.service.forward("log-probs", client, samples)
        return [score[targets_of(sample)] for score, sample in zip(scores, samples, strict=True)]

    # ---- learning

    def train(self, samples: Sequence[Sample], signals: Sequence[Signals], loss: Loss) -> dict[str, float]:
        """See `Engine.train`.

        `entropy` is an estimate, for the protocol gives no distributions: minus the log-probs of the response tokens, which
        is the entropy on average where the policy sampled them.
        """
        if self._gradients is None:
            self._gradients = find_out(self.service, self._reference())
        joined = {name: torch.cat([signal[name] for signal in signals]) for name in signals[0]}
        row: dict[str, float] = {}

        def total(log_probs: Sequence[Tensor]) -> Tensor:
            flat = torch.cat(
                [value[targets_of(sample)] for value, sample in zip(log_probs, samples, strict=True)]
            )  # (tokens,)
            parts, watched = components(loss(flat, joined))
            row.update({name: float(value) for name, value in watched.items()})
            row["entropy"] = -float(flat.detach().sum())
            for name, part in parts.items():
                gradient = torch.autograd.grad(part, flat, retain_graph=True)[0]
                row[f"loss/{name}"] = float(part.detach())
                row[f"signal/{name}"] = float(gradient.norm())
            if not all(math.isfinite(value) for value in row.values()):
                raise RunStopped(
                    "the loss is not a finite number; lower optimizer.learning_rate, resume from the last checkpoint."
                )
            return torch.stack(list(parts.values())).sum()

        self._gradients.add(self.client, samples, total)
        return row

    def step(self, learning_rate: float) -> dict[str, float]:
        """See `Engine.step`; `grad_norm/unclipped` is 1 where the norm was over the limit and the server does not clip."""
        if self._gradients is None:
            raise ValueError("a step needs a gradient first")
        self._gradients.flush(self.client)
        parameters = self.service.sdk.types.AdamParams(
            learning_rate=learning_rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            eps=EPSILON,
            weight_decay=self._weight_decay,
            grad_clip_norm=self._max_grad_norm,
        )
        norm = grad_norm(self.service.ask("a step", lambda: self.client.optim_step(parameters)))
        self._steps += 1
        self._saved = None
        if norm is None:
            return {}
        if not math.isfinite(norm):
            raise RunStopped("the gradient is not finite; lower the learning rate and resume from the last checkpoint.")
        unclipped = norm > self._max_grad_norm and not self._gradients.clips
        return {"grad_norm/total": norm, "grad_norm/unclipped": float(unclipped)}

    # ---- on disk, and on the server

    def save(self, folder: Path) -> None:
        """Weights stay on the server; the folder names them, and holds the tokenizer and a PEFT adapter if it can be had."""
        self._exports += 1
        name = f"export-{self._exports:05d}"  # a server takes a name once
        export = partial(export_adapter, self.service, self.client, name, self.base_model)
        write_checkpoint(folder, self._checkpoint(), self.tokenizer, export)

    def save_state(self, folder: Path) -> None:
        """The optimizer's state is part of the server's checkpoint; the folder names it."""
        write_checkpoint(folder, self._checkpoint())

    def load_state(self, model: Path, state: Path) -> None:
        """Go on from a checkpoint in a new training client; the reference policy stays where it is."""
        saved = read_checkpoint(state)
        if saved is None:
            raise UserError(f"checkpoint: {str(state)!r} names no weights on a Tinker server; was it saved by this engine?")
        create = self.service.client.create_training_client_from_state_with_optimizer
        self.client = self.service.ask("the checkpoint", lambda: create(saved.path))
        self._saved = saved.path
        self.publish()

    def _checkpoint(self) -> Checkpoint:
        """The server's checkpoint of the weights as they are now; made once."""
        if self._saved is None:
            name = f"step-{self._steps:05d}"
            self._saved = str(self.service.ask("a checkpoint", lambda: self.client.save_state(name)).path)
        return Checkpoint(self.base_model, self.rank, self._saved)

    def _reference(self) -> Any:
        """A training client that stays at the start; an own one, since a sampler's weights can move with its trainer's."""
        if self._start_client is None:
            self._start_client = self._client_at_start()
        return self._start_client

    def _client_at_start(self) -> Any:
        create = self.service.client
        if self.start is not None:
            start = self.start
            return self.service.ask("the weights to start from", lambda: create.create_training_client_from_state(start))
        return self.service.ask(
            f"adapters of rank {self.rank} over {self.base_model}",
            lambda: create.create_lora_training_client(
                base_model=self.base_model, rank=self.rank, seed=self._seed, train_unembed=False
            ),
        )


PROTOCOL_ALPHA = 32
"""The protocol has no field for LoRA's alpha; servers use this."""


SEED_BITS = 31
"""The longest seed that every server takes."""


def _wanted(adapters: Adapters | None) -> Adapters:
    """The adapters, if a server can be asked for them."""
    if adapters is None:
        raise UserError("model.lora: a Tinker server trains adapters only; set model.lora.rank to their width.")
    if adapters.alpha != PROTOCOL_ALPHA:
        raise UserError(
            f"model.lora.alpha: {adapters.alpha} cannot be asked of a Tinker server; set it to {PROTOCOL_ALPHA}."
        )
    if adapters.targets != "all-linear":
        raise UserError("model.lora.targets: a Tinker server chooses the layers itself; set it to all-linear.")
    return adapters


def _vocab_size(base_model: str) -> int:
    try:
        return int(AutoConfig.from_pretrained(base_model).get_text_config().vocab_size)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"model.path: no config can be read for {base_model!r}: {reason}") from error
