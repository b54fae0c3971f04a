"""An adapter out of a server's archive: what transformers loads from it, and what is never unpacked."""

from __future__ import annotations

import io
import json
import tarfile
from types import SimpleNamespace

import httpx
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from seed_opd.errors import RunStopped
from seed_opd.policy.tinker_checkpoint import Checkpoint, export_adapter, read_checkpoint, write_checkpoint
from seed_opd.policy.tinker_service import TinkerService


def archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def exported(files: dict[str, bytes], base: str, monkeypatch) -> dict[str, bytes]:
    """What is taken out of an archive of these files, from a server that gives it."""
    asked = []
    url = SimpleNamespace(get_checkpoint_archive_url=lambda *names: asked.append(names) or SimpleNamespace(url="http://a/b"))
    service = TinkerService(None, SimpleNamespace(create_rest_client=lambda: url), timeout=10)
    client = SimpleNamespace(
        save_weights_for_sampler=lambda name: SimpleNamespace(path=f"tinker://run/sampler_weights/{name}")
    )
    response = httpx.Response(200, content=archive(files), request=httpx.Request("GET", "http://a/b"))
    monkeypatch.setattr(httpx, "get", lambda *_, **__: response)
    adapter = export_adapter(service, client, "export-1", base)
    assert asked == [("run", "sampler_weights/export-1")]
    return adapter


@pytest.fixture()
def files(model, tmp_path) -> dict[str, bytes]:
    """An adapter of all layers, whose config forgets which they are, as SkyRL's does."""
    model.save_pretrained(tmp_path / "base")
    adapted = get_peft_model(model, LoraConfig(r=2, lora_alpha=32, target_modules="all-linear", init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    config |= {"target_modules": None, "base_model_name_or_path": "/another/machine"}
    weights = (tmp_path / "adapter" / "adapter_model.safetensors").read_bytes()
    return {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": weights}


def test_transformers_loads_the_folder_with_all_its_layers(files, model, tokenizer, tmp_path, monkeypatch):
    base = str(tmp_path / "base")
    adapter = exported({f"folder/{name}": content for name, content in files.items()}, base, monkeypatch)
    write_checkpoint(tmp_path / "saved", Checkpoint(base, 2, "tinker://run/weights/1"), tokenizer, lambda: adapter)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits, atol=1e-5, rtol=1e-4)
        plain = AutoModelForCausalLM.from_pretrained(base)
        assert (plain(ids).logits - model(ids).logits).abs().max() > 1e-2
    assert read_checkpoint(tmp_path / "saved") == Checkpoint(base, 2, "tinker://run/weights/1")


def test_nothing_else_is_taken_out_of_an_archive(files, tmp_path, monkeypatch):
    adapter = exported(files | {"../../evil": b"x", "adapter_model.bin": b"pickle"}, "base", monkeypatch)
    assert set(adapter) == {"adapter_config.json", "adapter_model.safetensors"}


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_half_an_adapter_is_none(files, name, monkeypatch):
    with pytest.raises(RunStopped, match="archive holds no"):
        exported({name: files[name]}, "base", monkeypatch)


def test_a_damaged_adapter_leaves_its_reason_and_no_files(files, tmp_path, monkeypatch):
    damaged = files | {"adapter_model.safetensors": b"\x00" * 20}
    adapter = lambda: exported(damaged, "base", monkeypatch)  # noqa: E731
    write_checkpoint(tmp_path / "saved", Checkpoint("base", 2, "p"), None, adapter)
    assert [file.name for file in (tmp_path / "saved").iterdir()] == ["tinker.json"]
    assert json.loads((tmp_path / "saved" / "tinker.json").read_text())["no_adapter"]
