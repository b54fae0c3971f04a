"""vLLM as a server, perhaps on other machines: token ids in, token ids and log-probs out, over HTTP."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

import httpx
from pydantic import BaseModel, Field, ValidationError

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.deadline import within
from seed_opd.policy.engine import Constraint, Sampled, Sampling
from seed_opd.policy.vllm_answers import Bounds, check_lengths, checked, fields, labels
from seed_opd.policy.vllm_sampler import LONGEST_WAIT, Push, Weights
from seed_opd.processes import from_main

CONNECT = 10.0
"""Seconds in which a server that listens takes a connection."""

TOKEN_BYTES = 500
"""The most that one token of an answer takes as JSON; a longer answer is not read to its end."""

Answer = TypeVar("Answer", bound=BaseModel)

ROUTES = "start it as docs/engines.md says, with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out"


class VllmServerSampler:
    """See `policy.engine.Sampler`. `push` hands the server weights through the routes of `client`.

    The remarks on seeds and constraints at `VllmSampler` hold here too. Raises RunStopped where the server is gone, does not
    answer in time, or answers garbage. Nothing is asked twice: a server that was started anew has other weights.
    """

    def __init__(self, client: Client, push: Push, bounds: Bounds, *, concurrency: int = 256) -> None:
        self.version: str | None = None
        self._client = client
        self._push = push
        self._bounds = bounds
        self._concurrency = concurrency
        self._labels = labels()

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
        check_lengths(prompts, sampling, self._bounds)
        bodies = [
            {"token_ids": list(prompt), "sampling_params": fields(sampling, seed, constraint, self._bounds)}
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        executor = ThreadPoolExecutor(self._concurrency, thread_name_prefix="vllm")
        try:
            return list(executor.map(lambda body: self._ask(body, sampling), bodies))
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """vLLM's cache has a fixed size and makes room for itself."""

    def publish(self, weights: Weights) -> None:
        """Send every weight under a new label, see that the server has it, and drop what it cached under the old ones."""
        version = next(self._labels)
        within(LONGEST_WAIT, f"{self._client.shown}, new weights", lambda: self._push(weights, version))
        self.version = from_main(lambda: self._settled(version))  # nobody samples before the main process has seen to it

    def _settled(self, version: str) -> str:
        """The label of the weights, once the server has them and nothing else."""
        label = self._client.get("weight_info", _WeightInfo).weight_version
        if label != version:
            raise RunStopped(
                f"{self._client.shown} did not take the weights {version}: it names {label[:40]!r}; see its log."
            )
        if not self._client.post("reset_prefix_cache", {}, _Success).success:
            raise RunStopped(
                f"{self._client.shown} did not empty its prefix cache, which is of the old weights; see its log."
            )
        return label

    def _ask(self, body: dict[str, Any], sampling: Sampling) -> Sampled:
        most = TOKEN_BYTES * (sampling.max_tokens + 10)
        [choice] = self._client.post("inference/v1/generate", body, _Answer, most=most).choices
        tokens = choice.logprobs.content
        same = [token.token_id for token in tokens] == choice.token_ids
        return checked(
            choice.token_ids,
            [token.logprob for token in tokens] if same else None,
            choice.finish_reason,
            {span.version for span in choice.weight_versions or []},
            sampling=sampling,
            bounds=self._bounds,
            version=self.version,
        )


class Client:
    """The routes of a vLLM server. The key is read from the variable that is named, sent with each request, and never shown.

    Raises UserError for an address or a key that cannot be used, and where nothing listens; later RunStopped.
    """

    def __init__(self, url: str, api_key_variable: str | None = None, *, timeout: float = LONGEST_WAIT) -> None:
        if not url.startswith(("http://", "https://")) or not httpx.URL(url).host:
            raise UserError(f"engine.url: {url!r} is no address; write it as in 'http://host:8000'.")
        self.host = httpx.URL(url).host
        self.shown = f"the vLLM server at {httpx.URL(url).netloc.decode()}"
        self.version = ""
        self._timeout = timeout
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/",
            headers=_headers(api_key_variable),
            timeout=httpx.Timeout(timeout, connect=CONNECT),
            limits=httpx.Limits(max_connections=None),
        )

    def connect(self) -> Model:
        """The model that is served; raises UserError where there is none to be had."""
        try:
            return self.get("v1/models", _Models).data[0]
        except RunStopped as error:
            raise UserError(f"engine.url: {error}") from error

    def get(self, path: str, kind: type[Answer]) -> Answer:
        return self._request("GET", path, None, kind, 1_000_000)

    def post(self, path: str, body: dict[str, Any], kind: type[Answer], *, most: int = 1_000_000) -> Answer:
        return self._request("POST", path, body, kind, most)

    # ---- what vLLM's weight transfer calls

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self.post("init_weight_transfer_engine", {"init_info": init_info}, _Anything)

    def start_weight_update(self) -> None:
        self.post("start_weight_update", {}, _Anything)

    def update_weights(self, update_info: Any) -> None:
        self.post("update_weights", {"update_info": update_info}, _Anything)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.post("finish_weight_update", {"weight_version": self.version}, _Anything)

    def world_size(self) -> int:
        """GPUs that take part in a transfer."""
        return self.get("get_world_size", _WorldSize).world_size

    # ---- one request

    def _request(self, method: str, path: str, body: dict[str, Any] | None, kind: type[Answer], most: int) -> Answer:
        try:
            with self._http.stream(method, path, json=body) as response:
                content = self._read(response, most)
        except httpx.TimeoutException as error:
            raise self._late() from error
        except httpx.RequestError as error:
            raise RunStopped(f"{self.shown} does not answer ({type(error).__name__}); {ROUTES}, then resume.") from error
        if response.status_code != 200:
            raise self._refusal(path, response.status_code, content)
        try:
            return kind.model_validate_json(content, strict=True)
        except ValidationError as error:
            detail = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in detail["loc"])
            raise RunStopped(
                f"{self.shown} gives an answer to {path} that cannot be read: {place}: {detail['msg']}."
            ) from error

    def _read(self, response: httpx.Response, most: int) -> bytes:
        """The answer, however slowly it comes, within the time-out and `most` bytes."""
        content, begun = bytearray(), time.monotonic()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > most and response.status_code != 200:
                break  # the beginning of a refusal says enough
            if len(content) > most:
                raise RunStopped(f"{self.shown} gives an answer of more than {most} bytes; check its version.")
            if time.monotonic() - begun > self._timeout:
                raise self._late()
        return bytes(content)

    def _late(self) -> RunStopped:
        return RunStopped(f"{self.shown} did not answer within {self._timeout:g} seconds; see its log, then resume.")

    def _refusal(self, path: str, status: int, content: bytes) -> RunStopped:
        if status in (401, 403):
            return RunStopped(f"{self.shown} answers {status}; set engine.api_key_variable to a variable with its key.")
        if status == 404:
            return RunStopped(f"{self.shown} has no route {path}; {ROUTES}.")
        said = " ".join(content.decode(errors="replace").split())[:200]
        return RunStopped(f"{self.shown} answers {status} to {path}: {said!r}.")


class Model(BaseModel):
    """A model that a server serves."""

    id: str
    max_model_len: int


class _Models(BaseModel):
    data: Annotated[list[Model], Field(min_length=1)]


class _Token(BaseModel):
    token_id: int
    logprob: float


class _LogProbs(BaseModel):
    content: list[_Token]


class _Span(BaseModel):
    version: str


class _Choice(BaseModel):
    token_ids: list[int]
    logprobs: _LogProbs
    finish_reason: str
    weight_versions: list[_Span] | None = None


class _Answer(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]


class _WeightInfo(BaseModel):
    weight_version: str


class _WorldSize(BaseModel):
    world_size: Annotated[int, Field(ge=1)]


class _Success(BaseModel):
    success: bool


class _Anything(BaseModel):
    pass


def _headers(api_key_variable: str | None) -> dict[str, str]:
    if api_key_variable is None:
        return {}
    key = os.environ.get(api_key_variable, "").strip()
    if not (key.isascii() and key.isprintable() and key):
        raise UserError(f"engine.api_key_variable: {api_key_variable!r} holds no key; export it in the environment.")
    return {"Authorization": f"Bearer {key}"}
