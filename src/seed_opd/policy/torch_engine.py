"""The torch engine: one Hugging Face causal language model, sampled, scored and trained, on one process or on many."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path

import torch
import transformers
from huggingface_hub import save_torch_state_dict
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seed_opd.errors import RunStopped
from seed_opd.files import replace_folder
from seed_opd.policy.adapters import adapters_off, has_adapters, merged
from seed_opd.policy.engine import Constraint, Loss, Sampled, Sampler, Sampling, Signals, components
from seed_opd.policy.language_model import LanguageModel, response_logprobs
from seed_opd.policy.loading import load_model
from seed_opd.policy.pictures import blank
from seed_opd.policy.sampler import TorchSampler
from seed_opd.policy.samples import Sample, batches_by_tokens
from seed_opd.policy.sharding import hold_pieces, hold_whole, in_pieces, whole
from seed_opd.processes import add_up, count, from_main, is_main, most, rank, spread

FILLER = Sample((0, 0), ((1, 2),))
"""What a process computes, for nothing, while others still have samples: their passes need all processes.

Where samples have pictures, so does the filler, and a micro-batch without any gets it too: the layers that see are cut
into pieces as well.
"""


class TorchEngine:
    """See `policy.engine.Engine`.

    `reference` is what `logprobs` asks when told to; a policy with adapters is its own. `micro_batch_tokens` bounds the
    padded tokens of one forward pass, which bounds memory; results do not depend on it, nor on the number of processes,
    which share samples to score and to train on. `sample` draws for the process that calls it.
    """

    def __init__(
        self,
        policy: LanguageModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        reference: LanguageModel | None = None,
        sampler: Sampler | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        micro_batch_tokens: int = 16384,
    ) -> None:
        self.policy = policy
        self.tokenizer = tokenizer
        self.vocab_size: int = policy.model.config.get_text_config().vocab_size
        self.eye = policy.eye
        self.reference = reference
        self.max_grad_norm = max_grad_norm
        self.micro_batch_tokens = micro_batch_tokens
        self.adapted = has_adapters(policy)
        for model in (policy, reference):
            if model is not None:
                hold_pieces(model)
        self._trained = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self._trained.values(), lr=0.0, betas=betas, weight_decay=weight_decay, fused=True
        )
        self.sampler: Sampler = sampler or TorchSampler(policy.model, [tokenizer.eos_token_id], policy.eye)
        self.publish()

    def describe(self) -> dict[str, str | int]:
        return {
            "parameters": sum(parameter.numel() for parameter in self.policy.parameters()),
            "trained_parameters": sum(parameter.numel() for parameter in self._trained.values()),
            "processes": count(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
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
        with torch.compiler.set_stance("force_eager") if self.policy.compiled else nullcontext():
            return self.sampler.sample(prompts, sampling, seeds, keys=keys, constraint=constraint)

    def publish(self) -> None:
        hold_whole(self.policy)
        self.sampler.publish(lambda: merged(self.policy.model, whole))

    # ---- scoring

    def logprobs(self, samples: Sequence[Sample], reference: bool = False) -> list[Tensor]:
        if not reference:
            return self._scores(self.policy, samples)
        if self.adapted:
            with adapters_off(self.policy.model):
                return self._scores(self.policy, samples)
        if self.reference is None:
            raise ValueError("this engine was made without a reference policy")
        scores = self._scores(self.reference, samples)
        hold_pieces(self.reference)
        return scores

    def _scores(self, model: LanguageModel, samples: Sequence[Sample]) -> list[Tensor]:
        self.sampler.forget()
        hold_whole(model)
        return spread(lambda share: self._share_of_scores(model, share), samples)

    @torch.no_grad()
    def _share_of_scores(self, model: LanguageModel, samples: Sequence[Sample]) -> list[Tensor]:
        scores: list[Tensor] = [torch.empty(0)] * len(samples)
        for indices in batches_by_tokens([len(sample.token_ids) for sample in samples], self.micro_batch_tokens):
            batch = [samples[index] for index in indices]
            flat, _ = response_logprobs(model, batch)
            for index, part in zip(indices, flat.cpu().split([sample.response_tokens for sample in batch]), strict=True):
                scores[index] = part
        return scores

    # ---- learning

    def train(self, samples: Sequence[Sample], signals: Sequence[Signals], loss: Loss) -> dict[str, float]:
        self.sampler.forget()
        hold_pieces(self.policy)
        order = sorted(range(len(samples)), key=lambda index: -len(samples[index].token_ids))
        mine = order[rank() :: count()]  # each process gets its part of the long and of the short ones
        batches = batches_by_tokens([len(samples[index].token_ids) for index in mine], self.micro_batch_tokens)
        rounds = most(len(batches))
        filler = self._pictured_filler if any(sample.has_pictures for sample in samples) else FILLER
        sums: dict[str, float] = {}
        for batch in batches:
            indices = [mine[place] for place in batch]
            parts = [samples[index] for index in indices]
            unseeing = filler.has_pictures and not any(sample.has_pictures for sample in parts)
            self._accumulate(parts, [signals[index] for index in indices], loss, sums, [filler] if unseeing else [])
        for _ in range(rounds - len(batches)):
            (response_logprobs(self.policy, [filler])[0] * 0.0).sum().backward()
        return {name: value**0.5 if name.startswith("signal/") else value for name, value in add_up(sums).items()}

    @cached_property
    def _pictured_filler(self) -> Sample:
        assert self.eye is not None  # samples with pictures came through it
        ids = (*self.eye.ids(blank()), 0)
        return Sample(ids, ((len(ids) - 1, len(ids)),))

    def _accumulate(
        self, samples: list[Sample], signals: list[Signals], loss: Loss, sums: dict[str, float], fillers: list[Sample]
    ) -> None:
        """Add the gradient of one micro-batch, and what is logged about it; fillers are computed and count nothing."""
        everything, entropy = response_logprobs(self.policy, [*samples, *fillers])  # (tokens,)
        flat, entropy = (part[: len(part) - len(fillers)] for part in (everything, entropy))
        live = flat.detach().requires_grad_()  # the model's backward pass is to begin once, not once a component
        parts, watched = components(loss(live, _concatenate(signals, flat.device)))
        gradients = {name: torch.autograd.grad(part, live, retain_graph=True)[0] for name, part in parts.items()}
        # FSDP takes the mean over processes, and the loss is a sum
        total = count() * torch.stack(list(gradients.values())).sum(dim=0)
        everything.backward(torch.cat([total, total.new_zeros(len(fillers))]))
        _add(sums, "entropy", entropy.sum())
        for name, value in watched.items():
            _add(sums, name, value)
        for name, part in parts.items():
            _add(sums, f"loss/{name}", part.detach())
            _add(sums, f"signal/{name}", gradients[name].square().sum())

    def step(self, learning_rate: float) -> dict[str, float]:
        norm = whole(torch.nn.utils.clip_grad_norm_(self._trained.values(), self.max_grad_norm))
        if not torch.isfinite(norm):
            self.optimizer.zero_grad(set_to_none=True)
            raise RunStopped("the gradient is not finite; lower the learning rate and resume from the last checkpoint.")
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"grad_norm/total": float(norm)}

    # ---- on disk

    def save(self, folder: Path) -> None:
        """Adapters are saved as part of the weights that they adapt, so that anyone can load the folder."""
        hold_pieces(self.policy)
        weights = _on_main(merged(self.policy.model, whole))
        hold_whole(self.policy)
        from_main(lambda: self._write(folder, weights))

    def _write(self, folder: Path, weights: dict[str, Tensor]) -> None:
        model = self.policy.model
        with replace_folder(folder) as temporary:
            model.config.architectures = [type(model).__name__]
            model.config.dtype = torch.float32
            model.config.save_pretrained(temporary)
            if model.generation_config is not None:
                model.generation_config.save_pretrained(temporary)
            save_torch_state_dict(weights, temporary)
            self.tokenizer.save_pretrained(temporary)
            if self.eye is not None:
                self.eye.processor.save_pretrained(temporary)

    def save_state(self, folder: Path) -> None:
        hold_pieces(self.policy)
        tensors = _on_main(self._state())
        hold_whole(self.policy)
        from_main(lambda: _write_state(folder, tensors))

    def load_state(self, model: Path, state: Path) -> None:
        """Only the main process reads; the number of processes may be another than at the time of saving."""
        hold_pieces(self.policy)
        tensors = self._read(model, state) if is_main() else {}
        steps = from_main(lambda: {name: float(tensor) for name, tensor in tensors.items() if name.endswith("/step")})
        for name, parameter in self._trained.items():
            with torch.no_grad():
                parameter.copy_(in_pieces(tensors.get(f"{name}/weight"), parameter))
            if f"{name}/step" in steps:
                moments = {key: in_pieces(tensors.get(f"{name}/{key}"), parameter) for key in ("exp_avg", "exp_avg_sq")}
                step = torch.tensor(steps[f"{name}/step"], device=parameter.device)
                self.optimizer.state[parameter] = {"step": step, **moments}
        self.publish()

    def _read(self, model: Path, state: Path) -> dict[str, Tensor]:
        tensors = load_file(state / "optimizer.safetensors")
        if not self.adapted:
            tensors |= {f"{name}/weight": weight.detach() for name, weight in load_model(model).named_parameters()}
        return tensors

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        """The optimizer's moments, and the adapters, which the saved model does not hold apart."""
        for name, parameter in self._trained.items():
            if self.adapted:
                yield f"{name}/weight", whole(parameter.detach())
            for key, value in self.optimizer.state.get(parameter, {}).items():
                yield f"{name}/{key}", whole(value)


def _write_state(folder: Path, tensors: dict[str, Tensor]) -> None:
    with replace_folder(folder) as temporary:
        save_file(tensors, temporary / "optimizer.safetensors")


def _on_main(tensors: Iterator[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """In the main process's memory; all of them must ask, since each tensor is put together from all."""
    kept = {}
    for name, tensor in tensors:
        if is_main():
            kept[name] = tensor.cpu().clone()  # put together from pieces, it may be a view of something longer
    return kept


def _add(sums: dict[str, float], name: str, value: Tensor) -> None:
    sums[name] = sums.get(name, 0.0) + float(value)


def _concatenate(signals: Sequence[Signals], device: torch.device) -> dict[str, Tensor]:
    return {name: torch.cat([signal[name] for signal in signals]).to(device) for name in signals[0]}
