"""The engine protocol: everything that training needs from weights, wherever they live."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seed_opd.policy.pictures import Eye
from seed_opd.policy.samples import Sample


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw tokens: `temperature` 0 is greedy; a response ends with the end token or after `max_tokens`."""

    temperature: float = 1.0
    max_tokens: int = 512


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled response: its token ids, the end token included, and their log-probabilities under the sampling policy.

    `finished` is False when the response was cut by `max_tokens`.
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finished: bool


class Constraint(Protocol):
    """A grammar over responses, with one state per row of a batch."""

    grammar: str
    """The same in xgrammar's EBNF, for a sampler that keeps the states itself; only `max_tokens` bounds a response there."""

    def mask(self, rows: Sequence[int]) -> Tensor:
        """Which tokens may come next, (rows, vocabulary) bool."""

    def accept(self, row: int, token_id: int) -> bool:
        """Advance a row by the token it took; True when its response is complete."""


Signals = Mapping[str, Tensor]
"""Per response token of a sample, by name, each (response_tokens,)."""

Loss = Callable[[Tensor, Signals], Mapping[str, Tensor]]
"""From the live log-probs (tokens,) of a micro-batch and its signals, each (tokens,), to one masked sum per component.

A sum without gradient is no component: it is only watched, and logged under its own name.

A component is divided by its own global denominator inside the signals' weights, so that neither the size of the
micro-batches nor another component changes its weight.
"""


def components(sums: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What a loss gave, parted into what pushes and what is only watched."""
    pushing = {name: value for name, value in sums.items() if value.requires_grad}
    return pushing, {name: value for name, value in sums.items() if name not in pushing}


class Sampler(Protocol):
    """Draws responses with weights that it holds, or shares with the trainer."""

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seeds: Sequence[str],
        *,
        keys: Sequence[Hashable] | None = None,
        constraint: Constraint | None = None,
    ) -> list[Sampled]:
        """See `Engine.sample`."""

    def publish(self, weights: Callable[[], Iterator[tuple[str, Tensor]]]) -> None:
        """Go on with the trained weights: `weights` yields each one whole, under its Hugging Face name.

        A sampler that shares the trainer's memory only forgets what it cached under the old ones.
        """

    def forget(self) -> None:
        """Give back the memory of growing conversations, which are over; scoring and learning need it."""


class Engine(Protocol):
    """Sample, score, train, publish, save: one small interface over weights."""

    tokenizer: PreTrainedTokenizerBase
    vocab_size: int
    """Width of the logits, which can exceed the tokenizer."""
    eye: Eye | None
    """What turns pictures into tokens; None for a model that cannot see."""

    def describe(self) -> dict[str, str | int]:
        """What a run notes about it at its start: sizes and versions of what computes."""

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seeds: Sequence[str],
        *,
        keys: Sequence[Hashable] | None = None,
        constraint: Constraint | None = None,
    ) -> list[Sampled]:
        """Draw one response per prompt; the tokens of a prompt depend on its seed, not on the rest of the batch.

        `keys` name growing conversations: what a key's last prompt and response left in the cache is not computed again.
        """

    def logprobs(self, samples: Sequence[Sample], reference: bool = False) -> list[Tensor]:
        """Log-probabilities of the response tokens, one (response_tokens,) float32 tensor per sample, without gradient."""

    def train(self, samples: Sequence[Sample], signals: Sequence[Signals], loss: Loss) -> dict[str, float]:
        """Accumulate the gradient of the summed loss over all samples; returns what to log.

        `loss/<component>` is the component's value, `signal/<component>` the norm of its gradient at the log-probs, which
        tells a component that pushes nothing, or everything; `entropy` is the sum over response tokens, in nats.
        """

    def step(self, learning_rate: float) -> dict[str, float]:
        """Clip the accumulated gradient, take one optimizer step, and clear it; returns the gradient norm."""

    def publish(self) -> None:
        """Make the trained weights the ones that `sample` uses."""

    def save(self, folder: Path) -> None:
        """Write the model as a Hugging Face folder."""

    def save_state(self, folder: Path) -> None:
        """Write what training needs to go on exactly: optimizer state."""

    def load_state(self, model: Path, state: Path) -> None:
        """Go on from a saved model and state."""
