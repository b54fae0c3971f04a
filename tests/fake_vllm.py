"""Just enough of the package vllm to see how it is used; put into `sys.modules` by a test, for there is none here."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field
from typing import Any


@dataclass
class SamplingParams:
    temperature: float
    max_tokens: int
    seed: int
    stop_token_ids: list[int]
    ignore_eos: bool
    logprobs: int
    detokenize: bool
    structured_outputs: Any = None


@dataclass
class StructuredOutputsParams:
    grammar: str


@dataclass
class Value:
    logprob: float


@dataclass
class Span:
    version: str


@dataclass
class Output:
    token_ids: list[int]
    logprobs: list[dict[int, Value]] | None
    finish_reason: str | None = "stop"
    weight_versions: list[Span] | None = None


@dataclass
class Request:
    outputs: list[Output]


class LLM:
    """Answers each prompt with its first token, and the end token 7; `answer` replaces that. `calls` is what was called."""

    def __init__(self, **arguments: Any) -> None:
        if arguments.get("model") == "broken":
            raise ValueError("no such\nmodel")
        self.arguments = arguments
        self.calls: list[Any] = []
        self.version = "default"
        self.takes_labels = True
        self.empties = True
        self.answer: Any = None
        self.model_config = types.SimpleNamespace(get_vocab_size=lambda: 100, max_model_len=50)

    def generate(self, prompts: Any, parameters: list[SamplingParams], use_tqdm: bool) -> list[Request]:
        self.calls.append(("generate", prompts, parameters, use_tqdm))
        if self.answer is not None:
            return self.answer(prompts)
        return [Request([self.output([prompt["prompt_token_ids"][0], 7])]) for prompt in prompts]

    def output(self, ids: list[int]) -> Output:
        return Output(ids, [{token: Value(-0.5)} for token in ids], "stop", [Span(self.version)])

    def reset_prefix_cache(self) -> bool:
        self.calls.append("reset_prefix_cache")
        return self.empties

    def get_weight_version(self) -> str:
        return self.version

    def init_weight_transfer_engine(self, request: dict[str, Any]) -> None:
        self.calls.append(("init", request["init_info"]))

    def start_weight_update(self) -> None:
        self.calls.append("start")

    def update_weights(self, request: dict[str, Any]) -> None:
        self.calls.append(("update", request["update_info"]))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.calls.append("finish")
        if self.takes_labels and weight_version is not None:
            self.version = weight_version


@dataclass
class ParamMeta:
    name: str
    dtype: Any
    shape: tuple[int, ...]


class WeightSource:
    pass


@dataclass
class IPCTrainerInitInfo:
    rank: int
    packed: bool
    packed_buffer_size_bytes: int


@dataclass
class NCCLTrainerInitInfo:
    master_address: str
    master_port: int
    world_size: int
    rank: int = field(kw_only=True)


class Sender:
    """Ships names and sums in place of tensors, in the order in which vLLM's own senders call a client."""

    def __init__(self, info: Any, client: Any, source: Any) -> None:
        self.info, self.client, self.source = info, client, source

    def send_weights(self) -> None:
        pairs = [(name, str(tensor.dtype), float(tensor.sum())) for name, tensor in self.source.iter_full()]
        assert [name for name, _, _ in pairs] == [meta.name for meta in self.source.metadata]
        if self.info.rank == 0:
            self.client.start_weight_update()
            self.client.update_weights({"weights": pairs})
            self.client.finish_weight_update()


class WeightTransferTrainerFactory:
    @staticmethod
    def trainer_init(info: Any, *, client: Any, source: Any) -> Sender:
        if info.rank == 0:
            client.init_weight_transfer_engine({"info": type(info).__name__, "world_size": getattr(info, "world_size", 1)})
        return Sender(info, client, source)


def install(monkeypatch: Any) -> None:
    """Make `import vllm` find this for the length of a test."""
    transfer = "vllm.distributed.weight_transfer"
    contents: dict[str, dict[str, Any]] = {
        "vllm": {"LLM": LLM, "SamplingParams": SamplingParams},
        "vllm.sampling_params": {"StructuredOutputsParams": StructuredOutputsParams},
        "vllm.distributed": {},
        transfer: {},
        f"{transfer}.base": {"ParamMeta": ParamMeta, "WeightSource": WeightSource},
        f"{transfer}.factory": {"WeightTransferTrainerFactory": WeightTransferTrainerFactory},
        f"{transfer}.ipc_engine": {"IPCTrainerInitInfo": IPCTrainerInitInfo},
        f"{transfer}.nccl_engine": {"NCCLTrainerInitInfo": NCCLTrainerInitInfo},
    }
    for name, content in contents.items():
        module = types.ModuleType(name)
        module.__spec__ = types.SimpleNamespace(name=name)  # type: ignore[assignment]
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "seed_opd.policy.vllm_weights", raising=False)
