"""A Hugging Face causal language model as the engine uses it: it scores the responses in token sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from seed_opd.errors import UserError
from seed_opd.policy.pictures import Eye
from seed_opd.policy.samples import Sample


class LanguageModel(nn.Module):
    """Scores responses. Logits exist for `logits_chunk` response tokens at a time, and for no other token.

    With a vocabulary of 150,000, the logits of one long micro-batch would take more memory than the model.
    """

    def __init__(self, model: PreTrainedModel, logits_chunk: int = 1024, eye: Eye | None = None) -> None:
        super().__init__()
        self.model = model.eval()
        self.logits_chunk = logits_chunk
        self.eye = eye
        self.compiled = False

    def forward(self, ids: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies (tokens,) of the tokens at (rows, columns) of ids (sequences, length)."""
        hidden = self.model.base_model(**self._inputs(ids), use_cache=False).last_hidden_state  # (sequences, length, width)
        before = hidden[rows, columns - 1].split(self.logits_chunk)  # each (chunk, width)
        targets = ids[rows, columns].split(self.logits_chunk)  # each (chunk,)
        chunks = [self._again(self._score, *pair, again=len(before) > 1) for pair in zip(before, targets, strict=True)]
        return torch.cat([taken for taken, _ in chunks]), torch.cat([entropy for _, entropy in chunks])

    def _inputs(self, ids: Tensor) -> dict[str, Tensor]:
        if self.eye is None:
            return {"input_ids": ids}
        positions = self.eye.positions(self.model, ids)
        return self.eye.inputs(ids) | ({} if positions is None else {"position_ids": positions})

    def _score(self, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """(chunk, width), (chunk,) -> log-probs (chunk,), entropies (chunk,) without gradient."""
        log_probs = torch.log_softmax(self.model.get_output_embeddings()(hidden).float(), dim=-1)  # (chunk, vocabulary)
        taken = log_probs.gather(1, targets[:, None])[:, 0]
        with torch.no_grad():
            entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
        return taken, entropy

    @staticmethod
    def _again(function: Callable[..., Any], *inputs: Tensor, again: bool) -> Any:
        """Call a function, and where a gradient is wanted, compute it again in the backward pass instead of keeping it."""
        if again and torch.is_grad_enabled():
            return checkpoint(function, *inputs, use_reentrant=False)
        return function(*inputs)

    def layers(self) -> list[nn.Module]:
        """The decoder layers, which are cut, compiled and recomputed one by one."""
        kinds = set(self.model._no_split_modules or ())
        return [module for module in self.model.modules() if type(module).__name__ in kinds]

    def recompute(self) -> None:
        """From now on, layers do not keep their activations for the backward pass."""
        for layer in self.layers():
            layer.forward = _recomputed(layer.forward)

    def compile_layers(self) -> None:
        """Let torch compile the layers for scoring and learning; sampling, whose shapes never repeat, goes without."""
        self.compiled = True
        for layer in self.layers():
            layer.compile(dynamic=True)

    def check_head(self) -> None:
        """Raise UserError for an architecture that does more to its logits than its output head."""
        ids = torch.tensor([[0, 1, 2, 3]], device=self.model.device)
        columns = torch.arange(1, 4, device=self.model.device)
        with torch.no_grad():
            whole = torch.log_softmax(self.model(input_ids=ids, use_cache=False).logits[0, :-1].float(), dim=-1)
            scores, _ = self(ids, torch.zeros_like(columns), columns)
        if not torch.allclose(whole.gather(1, ids[0, 1:, None])[:, 0], scores, atol=1e-3):
            raise UserError(
                f"model.path: {type(self.model).__name__} changes its logits after the output head, which scoring does not "
                "support; choose another architecture."
            )


def response_logprobs(model: LanguageModel, samples: Sequence[Sample]) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies (tokens,) of the response tokens of a batch, flat, in sample order.

    Sequences are padded at the right, where causal attention never looks.
    """
    device = model.model.device
    longest = max(len(sample.token_ids) for sample in samples)
    ids = torch.tensor([[*sample.token_ids, *[0] * (longest - len(sample.token_ids))] for sample in samples], device=device)
    rows = torch.tensor([row for row, sample in enumerate(samples) for _ in range(sample.response_tokens)], device=device)
    columns = torch.tensor([position for sample in samples for position in sample.positions], device=device)
    scores: tuple[Tensor, Tensor] = model(ids, rows, columns)
    return scores


def _recomputed(forward: Callable[..., Any]) -> Callable[..., Any]:
    def call(*inputs: Any, **named: Any) -> Any:
        if torch.is_grad_enabled():
            return checkpoint(forward, *inputs, use_reentrant=False, **named)
        return forward(*inputs, **named)

    return call
