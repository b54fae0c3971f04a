"""The memory plan held against measured peaks: one update's phases with random models, each in a fresh process on a CPU.

    python benchmarks/memory.py [SIZE ...]

Measured is the largest resident set of a phase above that after the imports, read from /proc (Linux). Freed memory must go
back to the system at once for that, which MALLOC_MMAP_THRESHOLD_ takes care of.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Size:
    """A random model, and how much of it is used."""

    name: str
    kind: str
    sizes: dict[str, int]
    settings: tuple[str, ...]
    prompt: int
    response: int
    rows: int
    processes: int = 1


SIZES = {
    size.name: size
    for size in (
        Size(
            "deep",
            "qwen3",
            {"vocab_size": 2048, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8, "head_dim": 64}
            | {"num_attention_heads": 8, "num_key_value_heads": 4},
            ("model.micro_batch_tokens=1024",),
            prompt=224,
            response=32,
            rows=16,
        ),
        Size(
            "wordy",
            "qwen2",
            {"vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 4}
            | {"num_attention_heads": 8, "num_key_value_heads": 2},
            ("model.micro_batch_tokens=1024", "model.logits_chunk=128", "model.recompute=true"),
            prompt=160,
            response=96,
            rows=16,
        ),
        Size(
            "half",
            "qwen2",
            {"vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8}
            | {"num_attention_heads": 8, "num_key_value_heads": 2},
            ("model.micro_batch_tokens=1024", "model.logits_chunk=128", "model.dtype=bfloat16"),
            prompt=192,
            response=64,
            rows=16,
        ),
        Size(
            "pair",
            "qwen2",
            {"vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8}
            | {"num_attention_heads": 8, "num_key_value_heads": 2},
            ("model.micro_batch_tokens=1024", "model.logits_chunk=128", "model.dtype=bfloat16", "model.recompute=true"),
            prompt=192,
            response=64,
            rows=16,
            processes=2,
        ),
        Size(
            "adapters",
            "qwen2",
            {"vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8}
            | {"num_attention_heads": 8, "num_key_value_heads": 2},
            ("model.micro_batch_tokens=1024", "model.logits_chunk=128", "model.lora={rank: 16}"),
            prompt=192,
            response=64,
            rows=16,
        ),
        Size(
            "wide",
            "qwen2",
            {"vocab_size": 8192, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 8}
            | {"num_attention_heads": 16, "num_key_value_heads": 2},
            ("model.micro_batch_tokens=512",),
            prompt=112,
            response=16,
            rows=4,
        ),
    )
}


def measure(size: Size) -> dict[str, dict[str, float]]:
    """Planned and measured bytes of each phase; the phases run in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(size.processes)] if size.processes > 1 else []
        inside = [__file__, "--inside", json.dumps(asdict(size)), "--folder", folder]
        make(size, Path(folder))
        command = [sys.executable, *launcher, *inside]
        done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    result: dict[str, dict[str, float]] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return result


def errors(row: dict[str, float]) -> tuple[float, float]:
    """How far the plan is off as a share of what was measured: in all, and without what is held through all phases."""
    held = row["held"]
    return row["planned"] / row["measured"] - 1, (row["planned"] - held) / (row["measured"] - held) - 1


# ---- inside


def make(size: Size, folder: Path) -> None:
    """Write the random model and a tokenizer of bytes."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from seed_opd.training.pretrain import make_tokenizer

    torch.manual_seed(0)
    config = AutoConfig.for_model(size.kind, **size.sizes, tie_word_embeddings=True, max_position_embeddings=4096)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    make_tokenizer(iter([""])).save_pretrained(folder)


def run(size: Size, folder: Path) -> dict[str, dict[str, float]]:
    """One update's phases; peaks are taken in the second round, when Adam's moments are there."""
    import torch

    from seed_opd.config import load
    from seed_opd.methods import resolve
    from seed_opd.policy.engine import Sampling
    from seed_opd.policy.samples import Sample
    from seed_opd.training.memory_plan import memory_plan
    from seed_opd.training.plan import known_shape, load_of
    from seed_opd.training.setup import set_up

    torch.set_num_threads(1)
    overrides = [
        *size.settings,
        "model.device=cpu",
        "threads=1",
        f"rollout.concurrency={size.rows}",
        f"context.max_prompt_tokens={size.prompt}",
        f"context.max_response_tokens={size.response}",
        f"analyzer.max_prompt_tokens={size.prompt}",
        f"analyzer.max_tokens={size.response}",
        "method=grpo",
    ]
    config = load("demo", overrides)
    shape = known_shape(config, folder)
    plan = memory_plan(shape, load_of(config, resolve(config.method), shape, size.processes))
    held = sum(plan.device["rollout"].get(part, 0) for part in ("weights", "frozen weights", "Adam", "reference"))
    _warm_up()
    before = _reset_peak()
    engine = set_up(config, model=folder, with_reference=True).engine

    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> list[int]:
        return torch.randint(3, 200, (count,), generator=generator).tolist()

    def sample(prompt: int, response: int) -> Sample:
        return Sample(tuple(ids(prompt + response)), ((prompt, prompt + response),))

    def learn(samples: list[Sample]) -> None:
        signals = [{"weight": torch.ones(one.response_tokens)} for one in samples]
        engine.train(samples, signals, lambda log_probs, given: {"sum": -(log_probs * given["weight"]).sum()})

    engine.logprobs([sample(8, 8)], reference=True)
    learn([sample(8, 8)])
    engine.step(1e-4)
    engine.publish()
    prompts = [ids(size.prompt) for _ in range(size.rows)]
    seeds = [str(row) for row in range(size.rows)]
    batch = [
        sample(size.prompt, size.response)
        for _ in range(2 * size.processes * (config.model.micro_batch_tokens // (size.prompt + size.response)))
    ]
    phases: dict[str, Callable[[], Any]] = {
        "rollout": lambda: engine.sample(prompts, Sampling(1.0, size.response), seeds),
        "scoring": lambda: (engine.logprobs(batch), engine.logprobs(batch, reference=True)),
        "learning": lambda: (learn(batch), engine.step(1e-4)),
    }
    return {
        name: {
            "parameters": shape.parameters,
            "held": held,
            "planned": plan.totals[name],
            "measured": _peak_of(phase) - before,
        }
        for name, phase in phases.items()
    }


def _warm_up() -> None:
    """Have the libraries allocate what they keep for good."""
    import torch

    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
    layer(torch.randn(64, 64)).sum().backward()
    optimizer.step()


def _peak_of(phase: Callable[[], Any]) -> int:
    _reset_peak()
    phase()
    return _status("VmHWM")


def _reset_peak() -> int:
    """Give freed memory back, and start a new peak at what is resident now, which is returned."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return 1024 * int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"some of {', '.join(SIZES)}; all by default")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        rows = run(Size(**json.loads(options.inside)), options.folder)
        print(json.dumps(rows) if os.environ.get("RANK", "0") == "0" else "", flush=True)
        return
    print(f"{'model':16}{'phase':10}{'planned, MB':>13}{'measured, MB':>14}{'error':>8}{'of what comes and goes':>24}")
    for name in options.sizes or SIZES:
        for phase, row in measure(SIZES[name]).items():
            error, passing = errors(row)
            title = f"{name}, {row['parameters'] / 1e6:.0f} M"
            sizes = f"{row['planned'] / 1e6:13.0f}{row['measured'] / 1e6:14.0f}"
            print(f"{title:16}{phase:10}{sizes}{error:+8.1%}{passing:+24.1%}", flush=True)


if __name__ == "__main__":
    main()
