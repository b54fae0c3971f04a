"""What of a server's checkpoint lies on this machine: a small file that names it, and a PEFT adapter where it can be had."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import httpx
from safetensors import SafetensorError
from safetensors.torch import load
from transformers import PreTrainedTokenizerBase

from seed_opd.errors import RunStopped, UserError
from seed_opd.files import replace_folder
from seed_opd.policy.tinker_service import TinkerService

NAME = "tinker.json"
ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
LARGEST_FILE = 8 * 1024**3
"""Bytes of one file of an adapter; more is not unpacked."""
DOWNLOAD_WAIT = 600.0
"""Seconds without a byte of an adapter."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights on a server: the base model, the adapters' rank, and the server's path of weights and optimizer state."""

    base_model: str
    rank: int
    path: str


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """What a folder names, None where it names nothing; raises UserError for a file that cannot be read."""
    file = folder / NAME
    if not file.is_file():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return Checkpoint(str(data["base_model"]), int(data["rank"]), str(data["path"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"checkpoint: {str(file)!r} is damaged; start from another one.") from error


def write_checkpoint(
    folder: Path,
    checkpoint: Checkpoint,
    tokenizer: PreTrainedTokenizerBase | None = None,
    adapter: Callable[[], dict[str, bytes]] | None = None,
) -> None:
    """Write the file, and beside it the tokenizer and the adapter; an adapter that cannot be had leaves its reason."""
    with replace_folder(folder) as temporary:
        note: dict[str, object] = dict(asdict(checkpoint))
        if tokenizer is not None:
            tokenizer.save_pretrained(temporary)
        if adapter is not None:
            try:
                for name, content in adapter().items():
                    (temporary / name).write_bytes(content)
            except (RunStopped, httpx.HTTPError, tarfile.TarError, SafetensorError, OSError, ValueError) as error:
                note["no_adapter"] = " ".join(str(error).split())[:400]
        (temporary / NAME).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def export_adapter(service: TinkerService, client: object, name: str, base_model: str) -> dict[str, bytes]:
    """The adapter as PEFT's two files, by the server's archive of sampler weights; raises RunStopped where it has none."""
    save = client.save_weights_for_sampler  # type: ignore[attr-defined]
    path = str(service.ask("weights to download", lambda: save(name)).path)
    run, _, checkpoint = path.removeprefix("tinker://").partition("/")
    rest = service.ask("a download", service.client.create_rest_client)
    url = service.ask("a download", lambda: rest.get_checkpoint_archive_url(run, checkpoint)).url
    response = httpx.get(url, timeout=DOWNLOAD_WAIT, follow_redirects=True)
    response.raise_for_status()
    files = _unpacked(response.content)
    if set(files) != set(ADAPTER):
        raise RunStopped(f"the server's archive holds no {' and '.join(ADAPTER)}")
    config, weights = ADAPTER
    return files | {config: _completed(files[config], list(load(files[weights])), base_model)}


def _completed(config: bytes, names: list[str], base_model: str) -> bytes:
    """PEFT's config with the base model as we know it, and with the layers that the weights are for.

    SkyRL leaves the layers out; PEFT would then take its defaults for the architecture, and forget the others' weights.
    """
    data = json.loads(config)
    layers = sorted({name.split(".lora_")[0].rsplit(".", 1)[-1] for name in names if ".lora_" in name})
    return json.dumps(data | {"base_model_name_or_path": base_model, "target_modules": layers}, indent=2).encode()


def _unpacked(archive: bytes) -> dict[str, bytes]:
    """The adapter's files out of an archive, by their bare names; nothing else in it is looked at."""
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            stream = tar.extractfile(member) if name in ADAPTER and member.size <= LARGEST_FILE else None
            if stream is not None:
                files[name] = stream.read()
    return files
