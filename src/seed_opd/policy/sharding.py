"""Weights in pieces over the processes (PyTorch's FSDP2): float32 pieces are trained, whole copies compute.

A module is in one of two states. Sharded: each forward pass gathers layer by layer, and all processes must take part in all
of them. Gathered: every process holds the whole copy, and computes as much or as little as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


def shard(module: nn.Module, layers: Sequence[nn.Module], dtype: torch.dtype, device: str, offload: bool) -> None:
    """Cut a module's weights into pieces, layer by layer, the rest as one; it computes in `dtype`.

    Gradients are summed in float32. With `offload`, pieces, gradients and what the optimizer keeps stay in CPU memory.
    """
    on_gpu = device.startswith("cuda")
    mesh = init_device_mesh("cuda" if on_gpu else "cpu", (dist.get_world_size(),))
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    keep = CPUOffloadPolicy(pin_memory=on_gpu) if offload else OffloadPolicy()
    for part in (*layers, module):
        fully_shard(part, mesh=mesh, mp_policy=precision, offload_policy=keep)


def hold_whole(module: nn.Module) -> None:
    """Give every process the whole weights; they stay until `hold_pieces`."""
    for part in _parts(module):
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()


def hold_pieces(module: nn.Module) -> None:
    """Drop the whole copies; what is trained are the pieces."""
    for number, part in enumerate(_parts(module)):
        part.reshard()
        part.set_reshard_after_forward(number > 0, recurse=False)  # the outermost one is used again at once, backwards


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may be in pieces; all processes must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def in_pieces(values: Tensor | None, like: Tensor) -> Tensor:
    """Cut the main process's values as `like` is cut; the other processes pass None."""
    if not isinstance(like, DTensor):
        assert values is not None
        return values.to(like.device, like.dtype)
    mesh = like.device_mesh
    if values is None:
        values = torch.empty(like.shape, dtype=like.dtype, device=mesh.device_type)
    return distribute_tensor(values.to(mesh.device_type, like.dtype), mesh, like.placements).to(like.device)


def take_weights(module: nn.Module, source: nn.Module | None) -> None:
    """Fill a module that has no values yet from the main process's copy of it, which the other processes do not have."""
    values = dict(source.named_parameters()) if source is not None else None
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(in_pieces(None if values is None else values[name].detach(), parameter))
    buffers = dict(source.named_buffers()) if source is not None else None
    for name, buffer in module.named_buffers():
        if buffers is not None:
            buffer.copy_(buffers[name])
        dist.broadcast(buffer, 0)


def _parts(module: nn.Module) -> Iterator[FSDPModule]:
    return (part for part in module.modules() if isinstance(part, FSDPModule))
