"""The memory plan: numbers by hand for a small shape, what autograd really keeps, and measured peaks."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from seed_opd.training.memory_plan import Load, adapter_parameters, memory_plan, saved_by_layer
from seed_opd.training.shapes import Shape, shape_of

SHAPE = Shape(
    parameters=1000,
    layer_parameters=300,
    vocabulary=10,
    width=8,
    feed_forward=16,
    layers=2,
    heads=2,
    kv_heads=1,
    head_size=4,
    head_norms=False,
)
LOAD = Load(
    processes=2,
    compute=2,
    micro_batch=100,
    logits_chunk=5,
    recompute=False,
    offload="none",
    reference=True,
    adapters=0,
    episodes=3,
    prompt=20,
    response=10,
    analyses=0,
    analysis_prompt=70,
    analysis=10,
    scored=40,
    learned=30,
    pair=50,
)
HELD = {"weights": 4 * 1000 // 2, "Adam": 8 * 1000 // 2}
REFERENCE = {"reference": 2 * 1000 // 2}


def test_sampling_by_hand() -> None:
    rollout = {
        "whole model": 2 * 1000,
        "keys and values": 3 * (20 + 10) * (2 * 1 * 4 * 2) * 3,  # two layers, and one of them twice while it grows
        "activations": 3 * 20 * 2 * (3 * 16 + 2 * 8),
        "logits": 3 * 10 * (32 + 2),
    }
    assert memory_plan(SHAPE, LOAD).device["rollout"] == {**HELD, **REFERENCE, **rollout}


def test_scoring_by_hand_with_policy_and_reference_whole() -> None:
    scoring = {"whole model": 2 * 2 * 1000, "activations": 100 * 2 * (3 * 16 + 2 * 8), "logits": 5 * 10 * (16 + 2)}
    assert memory_plan(SHAPE, LOAD).device["scoring"] == {**HELD, **REFERENCE, **scoring}
    longer = memory_plan(SHAPE, replace(LOAD, scored=200)).device["scoring"]
    assert longer["activations"] == 2 * scoring["activations"]  # a sequence that is longer than a micro-batch stays whole


def test_learning_by_hand() -> None:
    # norms 2 x ((4 + 2 x 2) x 8 + 4), attention 2 x 2 x 3 heads x 4 + 4 x 2 heads, feed-forward 4 x 2 x 16
    assert saved_by_layer(SHAPE, 2) == 136 + 56 + 128
    learning = {
        "gradients": 4 * 1000 // 2,
        "gathered": 2 * (400 + 2 * 300) + 2 * (2 * 400 + 300) + 4 * 300,
        "activations": 100 * (2 * 320 + (4 + 3 * 2) * 8 + 2 * (3 * 16 + 2 * 8)),
        "logits": 5 * 10 * (16 + 2),
    }
    planned = memory_plan(SHAPE, LOAD)
    assert planned.device["learning"] == {**HELD, **REFERENCE, **learning}
    assert planned.device["stage 1"] == {**HELD, **learning}
    assert planned.peak == planned.totals["learning"] == sum(learning.values()) + 7000
    again = memory_plan(SHAPE, replace(LOAD, recompute=True)).device["learning"]
    assert again["activations"] == 100 * (2 * 2 * 8 + 320 + (4 + 3 * 2) * 8 + 2 * (3 * 16 + 2 * 8))


def test_one_process_in_float32_has_neither_pieces_nor_copies() -> None:
    planned = memory_plan(SHAPE, replace(LOAD, processes=1, compute=4)).device
    assert not {"whole model", "gathered"} & {part for phase in planned.values() for part in phase}
    assert planned["rollout"]["weights"] == planned["rollout"]["reference"] == 4000
    assert planned["learning"]["head's gradient"] == 4 * 10 * 8


def test_offloading_moves_parts_and_loses_none() -> None:
    planned = {offload: memory_plan(SHAPE, replace(LOAD, offload=offload)) for offload in ("none", "reference", "training")}
    disk = {"loading and saving": 8 * 1000}
    assert planned["none"].cpu == disk
    assert planned["reference"].cpu == {**REFERENCE, **disk}
    assert planned["training"].cpu == {**REFERENCE, **HELD, "gradients": 2000, **disk}
    assert planned["none"].totals["learning"] - planned["training"].totals["learning"] == 1000 + 6000 + 2000


def test_adapters_train_little_beside_frozen_weights() -> None:
    planned = memory_plan(SHAPE, replace(LOAD, adapters=50, reference=False)).device
    held = {"frozen weights": 2 * 1000 // 2, "weights": 4 * 50 // 2, "Adam": 8 * 50 // 2}
    assert planned["learning"].items() >= {**held, "gradients": 4 * 50 // 2, "gathered": 2 * (400 + 2 * 300)}.items()
    assert planned["scoring"]["whole model"] == 2 * 1000


def test_phases_that_a_run_lacks_are_left_out() -> None:
    assert list(memory_plan(SHAPE, LOAD).device) == ["rollout", "scoring", "learning", "stage 1"]
    assert "analysis" in memory_plan(SHAPE, replace(LOAD, analyses=2)).device
    assert "rollout" not in memory_plan(SHAPE, replace(LOAD, episodes=0)).device


SIZES = {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 160, "num_attention_heads": 4, "num_key_value_heads": 2}


def toy(kind: str, layers: int) -> Any:
    return AutoConfig.for_model(kind, **SIZES, num_hidden_layers=layers)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_keeps_what_autograd_says_it_keeps(kind: str, dtype: torch.dtype) -> None:
    def kept(layers: int) -> int:
        """Bytes that autograd keeps beside the weights, each piece of memory once."""
        model = AutoModelForCausalLM.from_config(toy(kind, layers)).to(dtype).eval()
        weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
        found: dict[int, torch.Tensor] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            found[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            _output = model.base_model(input_ids=torch.zeros(1, 256, dtype=torch.long), use_cache=False)
        return sum(tensor.untyped_storage().nbytes() for place, tensor in found.items() if place not in weights)

    assert (kept(3) - kept(2)) / 256 == pytest.approx(saved_by_layer(shape_of(toy(kind, 2)), dtype.itemsize), rel=0.01)


def test_adapters_are_counted_as_peft_makes_them() -> None:
    pytest.importorskip("peft")
    from seed_opd.policy.adapters import Adapters, add_adapters

    for targets in ("all-linear", ["q_proj", "down_proj"]):
        model = AutoModelForCausalLM.from_config(toy("qwen3", 2))
        add_adapters(model, Adapters(4, 4, targets, 0))
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        assert adapter_parameters(shape_of(toy("qwen3", 2)), 4, targets) == trained


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    file = Path(__file__).parents[2] / "benchmarks" / "memory.py"
    spec = importlib.util.spec_from_file_location("benchmark_memory", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")
@pytest.mark.parametrize("size", ["deep", "half"])
def test_measured_peaks_are_within_a_fifth_of_the_plan(size: str, benchmark: ModuleType) -> None:
    for phase, row in benchmark.measure(benchmark.SIZES[size]).items():
        error, passing = benchmark.errors(row)
        assert abs(error) < 0.2, (phase, row)
        assert abs(passing) < 0.35, (phase, row)  # without what is held, whose size is no estimate
