"""The in-process engine: one Hugging Face causal language model, sampled, scored and trained with torch."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from seed_opd.errors import RunStopped, UserError
from seed_opd.files import replace_folder
from seed_opd.policy.engine import Constraint, Loss, Sampled, Sampler, Sampling, Signals
from seed_opd.policy.sampler import TorchSampler
from seed_opd.policy.samples import Sample, batches_by_tokens

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_model(path: Path | str, dtype: str, device: str = "cpu") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model with its tokenizer; weights come from safetensors only.

    A `Path` is a folder on this machine, a string may be a name on the hub too. Raises UserError where it is missing or its
    tokenizer has no chat template.
    """
    if isinstance(path, Path) and not path.is_dir():  # transformers would look for its name on the hub
        raise UserError(f"model.path: {str(path)!r} cannot be loaded: there is no such folder.")
    disable_progress_bar()  # a bar per loaded folder would drown our own
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=DTYPES[dtype], use_safetensors=True)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"model.path: {str(path)!r} cannot be loaded as a causal language model: {reason}") from error
    if tokenizer.chat_template is None:
        raise UserError(
            f"model.path: the tokenizer of {str(path)!r} has no chat template; use an instruct model or add one."
        )
    torch.nn.Module.to(model, device)
    return model, tokenizer


class TorchEngine:
    """See `policy.engine.Engine`.

    `micro_batch_tokens` bounds the padded tokens of one forward pass, which bounds memory; results do not depend on it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        reference: PreTrainedModel | None = None,
        sampler: Sampler | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        micro_batch_tokens: int = 16384,
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.vocab_size: int = model.config.vocab_size
        self.reference = reference.eval().requires_grad_(False) if reference is not None else None
        self.max_grad_norm = max_grad_norm
        self.micro_batch_tokens = micro_batch_tokens
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=betas, weight_decay=weight_decay, fused=True)
        self.sampler: Sampler = sampler or TorchSampler(model, [tokenizer.eos_token_id])
        _check_head(model)

    def describe(self) -> dict[str, str | int]:
        return {
            "parameters": self.model.num_parameters(),
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
        return self.sampler.sample(prompts, sampling, seeds, keys=keys, constraint=constraint)

    def publish(self) -> None:
        self.sampler.publish(lambda: self.model.named_parameters())

    # ---- scoring

    @torch.inference_mode()
    def logprobs(self, samples: Sequence[Sample], reference: bool = False) -> list[Tensor]:
        model = self.reference if reference else self.model
        if model is None:
            raise ValueError("this engine was made without a reference policy")
        scores: list[Tensor] = [torch.empty(0)] * len(samples)
        for indices in batches_by_tokens([len(sample.token_ids) for sample in samples], self.micro_batch_tokens):
            batch = [samples[index] for index in indices]
            flat, _ = response_logprobs(model, batch)
            for index, part in zip(indices, flat.cpu().split([sample.response_tokens for sample in batch]), strict=True):
                scores[index] = part
        return scores

    # ---- learning

    def train(self, samples: Sequence[Sample], signals: Sequence[Signals], loss: Loss) -> dict[str, float]:
        sums: dict[str, float] = {}
        for indices in batches_by_tokens([len(sample.token_ids) for sample in samples], self.micro_batch_tokens):
            flat, entropy = response_logprobs(self.model, [samples[index] for index in indices])
            parts = loss(flat, _concatenate([signals[index] for index in indices], flat.device))
            gradients = {name: torch.autograd.grad(part, flat, retain_graph=True)[0] for name, part in parts.items()}
            flat.backward(torch.stack(list(gradients.values())).sum(dim=0))
            _add(sums, "entropy", entropy.sum())
            for name, part in parts.items():
                _add(sums, f"loss/{name}", part.detach())
                _add(sums, f"signal/{name}", gradients[name].square().sum())
        return {name: value**0.5 if name.startswith("signal/") else value for name, value in sums.items()}

    def step(self, learning_rate: float) -> dict[str, float]:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
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
        with replace_folder(folder) as temporary:
            self.model.save_pretrained(temporary)
            self.tokenizer.save_pretrained(temporary)

    def save_state(self, folder: Path) -> None:
        with replace_folder(folder) as temporary:
            save_file(dict(self._optimizer_tensors()), temporary / "optimizer.safetensors")

    def load_state(self, model: Path, state: Path) -> None:
        self.model.load_state_dict(load_model(model, _dtype_name(self.model), str(self.model.device))[0].state_dict())
        tensors = load_file(state / "optimizer.safetensors", device=str(self.model.device))
        for name, parameter in self.model.named_parameters():
            moments = {
                key: tensors[f"{name}/{key}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"{name}/{key}" in tensors
            }
            if moments:
                self.optimizer.state[parameter] = moments
        self.publish()

    def _optimizer_tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                yield f"{name}/{key}", value


def response_logprobs(model: PreTrainedModel, samples: Sequence[Sample]) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies (tokens,) of the response tokens of a batch, flat, in sample order.

    Sequences are padded at the right, where causal attention never looks; the vocabulary is only reached at the positions
    that predict a response token.
    """
    device = model.device
    longest = max(len(sample.token_ids) for sample in samples)
    ids = torch.tensor([[*sample.token_ids, *[0] * (longest - len(sample.token_ids))] for sample in samples], device=device)
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state  # (samples, tokens, width)
    rows = [row for row, sample in enumerate(samples) for _ in range(sample.response_tokens)]
    columns = [position for sample in samples for position in sample.positions]
    before = hidden[rows, [column - 1 for column in columns]]  # (tokens, width)
    logits = model.get_output_embeddings()(before).float()  # (tokens, vocabulary)
    log_probs = torch.log_softmax(logits, dim=-1)
    taken = log_probs.gather(1, ids[rows, columns][:, None])[:, 0]
    with torch.no_grad():
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
    return taken, entropy


def _add(sums: dict[str, float], name: str, value: Tensor) -> None:
    sums[name] = sums.get(name, 0.0) + float(value)


def _concatenate(signals: Sequence[Signals], device: torch.device) -> dict[str, Tensor]:
    return {name: torch.cat([signal[name] for signal in signals]).to(device) for name in signals[0]}


def _check_head(model: PreTrainedModel) -> None:
    """Scoring applies the output head to chosen positions; refuse an architecture that does more than that to its logits."""
    ids = torch.tensor([[0, 1, 2, 3]], device=model.device)
    with torch.inference_mode():
        whole = model(input_ids=ids, use_cache=False).logits
        parts = model.get_output_embeddings()(model.base_model(input_ids=ids, use_cache=False).last_hidden_state)
    if not torch.allclose(whole.float(), parts.float(), atol=1e-3):
        raise UserError(
            f"model.path: {type(model).__name__} changes its logits after the output head, which scoring does not support; "
            "choose another architecture."
        )


def _dtype_name(model: PreTrainedModel) -> str:
    return next(name for name, dtype in DTYPES.items() if dtype == model.dtype)
