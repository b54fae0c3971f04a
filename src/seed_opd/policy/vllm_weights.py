"""The trainer's weights on their way into vLLM, by vLLM's own weight transfer.

Into an engine on the same GPU they go as CUDA IPC handles of a buffer that both processes map; NCCL does not join two
processes on one GPU. Into a server they go by an NCCL broadcast. Importing this module needs the package vllm.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

from seed_opd.policy.vllm_sampler import Weights

BUFFER_BYTES = 256 * 1024 * 1024
"""Of the buffer that both processes map, unless one weight alone is larger."""


class Source(WeightSource):
    """The weights in the sampler's number format, on the device that sends them; `weights` is set before each transfer."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.weights: Weights = lambda: iter(())
        self._dtype = dtype
        self._device = device

    @cached_property
    def metadata(self) -> list[ParamMeta]:
        """Names, formats and shapes, which do not change; finding them takes one pass over the weights."""
        return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in self.iter_full()]

    def iter_full(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in self.weights():
            yield name, tensor.detach().to(self._device, self._dtype)

    def largest(self) -> int:
        """Bytes of the largest weight."""
        return max(math.prod(meta.shape) * meta.dtype.itemsize for meta in self.metadata)


class IpcPush:
    """To a vllm.LLM whose engine runs on this process's GPU.

    Where the trainer has several processes, each has an engine of its own, and all push at the same time.
    """

    def __init__(self, llm: Any, dtype: torch.dtype, device: torch.device) -> None:
        self._client = InProcess(llm)
        self._source = Source(dtype, device)
        self._device = device
        self._sender: Any = None

    def __call__(self, weights: Weights, version: str) -> None:
        torch.cuda.set_device(self._device)  # a new thread begins on the first
        self._source.weights, self._client.version = weights, version
        if self._sender is None:
            size = max(BUFFER_BYTES, self._source.largest())
            info = IPCTrainerInitInfo(rank=0, packed=True, packed_buffer_size_bytes=size)
            self._sender = WeightTransferTrainerFactory.trainer_init(info, client=self._client, source=self._source)
        self._sender.send_weights()


class Server(Protocol):
    """The weight routes of a server; the first four are vLLM's protocol of a client."""

    host: str
    version: str

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None: ...
    def start_weight_update(self) -> None: ...
    def update_weights(self, update_info: Any) -> None: ...
    def finish_weight_update(self, weight_version: str | None = None) -> None: ...
    def world_size(self) -> int: ...


class NcclPush:
    """To a vLLM server on other GPUs, from the trainer's main process; the others take part where weights are gathered."""

    def __init__(self, server: Server, dtype: torch.dtype, device: torch.device, rank: int) -> None:
        self._server = server
        self._source = Source(dtype, device)
        self._device = device
        self._rank = rank
        self._sender: Any = None

    def __call__(self, weights: Weights, version: str) -> None:
        torch.cuda.set_device(self._device)  # a new thread begins on the first
        self._source.weights, self._server.version = weights, version
        if self._sender is None:
            workers = self._server.world_size() if self._rank == 0 else 0
            address, port = _meeting_point(self._server.host)
            info = NCCLTrainerInitInfo(address, port, 1 + workers, rank=self._rank)
            self._sender = WeightTransferTrainerFactory.trainer_init(info, client=self._server, source=self._source)
        self._sender.send_weights()


class InProcess:
    """vLLM's protocol of a client, over a vllm.LLM."""

    def __init__(self, llm: Any) -> None:
        self.version = ""
        self._llm = llm

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._llm.init_weight_transfer_engine({"init_info": init_info})

    def start_weight_update(self) -> None:
        self._llm.start_weight_update()

    def update_weights(self, update_info: Any) -> None:
        self._llm.update_weights({"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._llm.finish_weight_update(self.version)


def _meeting_point(host: str) -> tuple[str, int]:
    """This machine's address as the server's machine sees it, and a free port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # nothing is sent; the system only picks the interface
        address: str = probe.getsockname()[0]
    with socket.socket() as free:
        free.bind((address, 0))
        return address, int(free.getsockname()[1])
