"""A way for weights into vLLM that needs no GPU: a file. vLLM's worker imports this module, named as its extension.

All but the way itself is vLLM's own: start, load by name, finish, label.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from vllm.distributed.weight_transfer.base import WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from seed_opd.policy.vllm_sampler import Weights


class Extension:
    """Adds nothing to a worker."""


@dataclass
class _Init(WeightTransferInitInfo):
    pass


@dataclass
class _Update(WeightTransferUpdateInfo):
    path: str


class FileTransfer(WeightTransferEngine):
    init_info_cls = _Init
    update_info_cls = _Update

    def init_transfer_engine(self, init_info: _Init) -> None:
        pass

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: _Update) -> None:
        self.model.load_weights(load_file(update_info.path).items())

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        pass


WeightTransferEngineFactory.register_engine("file", FileTransfer)


class FilePush:
    """Gives weights to what speaks vLLM's protocol of a client."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client = client
        self.path = folder / "weights.safetensors"

    def __call__(self, weights: Weights, version: str) -> None:
        save_file({name: tensor.detach().contiguous().clone() for name, tensor in weights()}, self.path)
        self.client.version = version
        self.client.init_weight_transfer_engine({})
        self.client.start_weight_update()
        self.client.update_weights({"path": str(self.path)})
        self.client.finish_weight_update()


class LostPush(FilePush):
    """Labels weights that never arrive, as a broken transfer would."""

    def __call__(self, weights: Weights, version: str) -> None:
        super().__call__(lambda: iter(()), version)
