"""A server that speaks the Tinker protocol: connecting, waiting with a deadline, and one sentence for what goes wrong.

The protocol's SDK is the extra `tinker`. Versions 0.25 (what SkyRL's server understands) and later differ in what they
return at once and what as a future; both are waited for here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.deadline import within
from seed_opd.policy.samples import Sample

LONGEST_WAIT = 1800.0
"""Seconds for one request or one batch of them; the first ones wait for the server to compile."""

NO_KEY = "tml-no-key"
"""The SDK wants a key of this form; a server without keys does not look at it."""


class TinkerService:
    """One session with a server; `sdk` is the module `tinker`, `client` its ServiceClient."""

    def __init__(self, sdk: Any, client: Any, *, timeout: float = LONGEST_WAIT, secret: str = NO_KEY) -> None:
        self.sdk = sdk
        self.client = client
        self._timeout = timeout
        self._secret = secret

    @classmethod
    def connect(cls, url: str, api_key_variable: str | None, *, timeout: float = LONGEST_WAIT) -> TinkerService:
        """Open a session. Raises UserError where the SDK, the address or the key is missing."""
        if not url:
            raise UserError("engine.url: it is empty; name the address of the Tinker server, such as http://localhost:8000.")
        key = _key(api_key_variable)
        sdk = _sdk()
        service = cls(sdk, None, timeout=timeout, secret=key)
        service.client = service.ask("a session", lambda: sdk.ServiceClient(base_url=url, api_key=key))
        return service

    def ask(self, what: str, call: Callable[[], Any]) -> Any:
        """The settled result of a call to the SDK. Raises RunStopped where the server fails or does not answer in time."""
        name = f"the Tinker server, asked for {what}"

        def settle() -> Any:
            try:
                return _settled(call())
            except (RunStopped, UserError):
                raise
            except Exception as error:  # whatever the SDK raises, its own assertions included; it may quote the key
                reason = " ".join(f"{type(error).__name__}: {error}".split()).replace(self._secret, "[key]")[:400]
                raise RunStopped(f"{name}: {reason}; see its log, then resume from the last checkpoint.") from None

        return within(self._timeout, name, settle)

    # ---- what the protocol calls a datum

    def model_input(self, ids: Sequence[int]) -> Any:
        return self.sdk.types.ModelInput.from_ints(list(ids))

    def datum(self, sample: Sample, **inputs: Tensor) -> Any:
        """A sample as the protocol wants it: each token and the next one as its target, inputs of shape (tokens - 1,)."""
        ids = sample.token_ids
        targets = torch.tensor(ids[1:], dtype=torch.int64)
        fields = {"target_tokens": targets, **inputs}
        tensors = {name: self.sdk.types.TensorData.from_torch(value) for name, value in fields.items()}
        return self.sdk.types.Datum(model_input=self.model_input(ids[:-1]), loss_fn_inputs=tensors)

    def forward(self, what: str, client: Any, samples: Sequence[Sample]) -> list[Tensor]:
        """Log-probs of every token but the first, one (tokens - 1,) float32 tensor per sample, of a training client."""
        if not samples:
            return []
        data = [self.datum(sample, weights=torch.zeros(len(sample.token_ids) - 1)) for sample in samples]
        output = self.ask(what, lambda: client.forward(data, "cross_entropy"))
        return [
            checked_log_probs(row["logprobs"].to_torch(), sample)
            for row, sample in zip(output.loss_fn_outputs, samples, strict=True)
        ]


def targets_of(sample: Sample) -> list[int]:
    """Where the response tokens stand among the targets, which begin with the second token."""
    return [position - 1 for position in sample.positions]


def checked_log_probs(log_probs: Tensor, sample: Sample) -> Tensor:
    """What the server says of a sample, (tokens - 1,) float32; raises RunStopped for what cannot be log-probs."""
    if log_probs.shape != (len(sample.token_ids) - 1,) or not bool(torch.isfinite(log_probs).all()):
        raise RunStopped(
            f"the Tinker server gave log-probs of shape {tuple(log_probs.shape)} for {len(sample.token_ids)} tokens, or "
            "some that are no numbers; see its log, lower optimizer.learning_rate, and resume from the last checkpoint."
        )
    return log_probs.float()


def grad_norm(response: Any) -> float | None:
    """The gradient norm that an optimizer step reports, whatever name space it stands in; None where there is none."""
    for name, value in (response.metrics or {}).items():
        if name.split(":")[0].split("/")[-1] == "grad_norm":
            return float(value)
    return None


def _settled(answer: Any) -> Any:
    """A future's result, each result of a list of futures, or the answer itself."""
    if isinstance(answer, list):
        return [_settled(part) for part in answer]
    return answer.result() if hasattr(answer, "result") else answer


def _key(variable: str | None) -> str:
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable, "")
    if not key:
        raise UserError(
            f"engine.api_key_variable: the environment variable {variable!r} is empty; put the server's key in it."
        )
    return key


def _sdk() -> Any:
    try:
        import tinker
    except ImportError as error:
        raise UserError("engine.kind: 'tinker' needs the SDK; install it with pip install 'seed-opd[tinker]'.") from error
    return tinker
