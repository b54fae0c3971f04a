"""The pieces of an update, each against a yardstick: sampling, forward and backward, padding. `update.py` runs them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import torch
from measuring import interleaved, median, ratio, table, timed
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from seed_opd.config import load
from seed_opd.environments import make
from seed_opd.policy.context import ChatTemplate
from seed_opd.policy.engine import Sampling, Signals
from seed_opd.policy.language_model import LanguageModel
from seed_opd.policy.sampler import TorchSampler
from seed_opd.policy.samples import Sample, batches_by_tokens
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.training import rl
from seed_opd.training.setup import model_path, train_tasks


def random_model(width: int, layers: int, heads: int, vocabulary: int) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        head_dim=width // heads,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(shape).eval()


def the_model(arguments: argparse.Namespace) -> PreTrainedModel:
    dtype = torch.bfloat16 if arguments.dtype == "bfloat16" else torch.float32
    return AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype).eval().to(arguments.device)


# ---- sampling


def sampler(arguments: argparse.Namespace) -> None:
    count, tokens = 32, 64
    prompts = openings(count)
    longest = max(len(ids) for ids in prompts)
    print(f"### Sampling {count} x {tokens} tokens behind prompts of at most {longest} tokens, target >= 3\n")
    models = {"the policy": the_model(arguments)}
    if not arguments.shape:
        models["random weights"] = random_model(64, 2, 2, 1088)
    rows, seeds = [], [str(number) for number in range(count)]
    options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": True, "top_k": 0, "pad_token_id": 0}
    for name, model in models.items():
        ours, inputs = TorchSampler(model, []), left_padded(prompts, model)
        works = {
            "ours": timed(lambda ours=ours: ours.sample(prompts, Sampling(1.0, tokens), seeds)),
            "theirs": timed(lambda model=model, inputs=inputs: model.generate(**inputs, **options)),
        }
        measured = interleaved(arguments.rounds, works)
        rates = [f"{count * tokens / median(part, 'seconds'):,.0f}" for part in measured.values()]
        size = f"{name}, {model.num_parameters() / 1e6:.2f} M parameters"
        rows.append([size, *rates, ratio(measured["theirs"], measured["ours"])])
    table(["model", "ours, with log-probs (tokens/s)", "model.generate (tokens/s)", "speed-up"], rows)


def openings(count: int) -> list[list[int]]:
    """The first prompts of household games."""
    config = load("demo", [f"environment.train_tasks={count}"])
    games = make(config.environment.name, **config.environment.options)
    template = ChatTemplate(AutoTokenizer.from_pretrained(model_path("tiny")))
    starts = [games.reset(task) for task in train_tasks(config, games)]
    return [template.opening(games.opening(start.goal, start.text, None)) for start in starts]


def left_padded(prompts: list[list[int]], model: PreTrainedModel) -> dict[str, Tensor]:
    longest = max(len(ids) for ids in prompts)
    ids = torch.tensor([[0] * (longest - len(ids)) + ids for ids in prompts], device=model.device)
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts], device=model.device)
    return {"input_ids": ids, "attention_mask": mask}


# ---- learning


def matmul(arguments: argparse.Namespace) -> None:
    count, tokens = 4, 512
    model = the_model(arguments) if arguments.shape else random_model(512, 10, 8, 8192).to(arguments.device)
    engine = TorchEngine(LanguageModel(model), AutoTokenizer.from_pretrained(model_path("tiny")))
    drawn = torch.randint(0, 1000, (count, tokens), generator=torch.Generator().manual_seed(0)).tolist()
    samples = [Sample(tuple(ids), ((1, tokens),)) for ids in drawn]
    signals: list[Signals] = [{"weight": torch.ones(tokens - 1)} for _ in samples]
    size = 1024 if arguments.device == "cpu" else 8192
    left, right = (torch.randn(size, size, device=arguments.device, dtype=model.dtype) for _ in range(2))
    work = {"model": operations(model, count, tokens), "product": 20 * 2.0 * size**3}
    rows = interleaved(
        arguments.rounds,
        {
            "model": timed(lambda: engine.train(samples, signals, likelihood), operations=work["model"]),
            "product": timed(lambda: [left @ right for _ in range(20)], operations=work["product"]),
        },
    )
    for row in (*rows["model"], *rows["product"]):
        row["rate"] = row["operations"] / row["seconds"] / 1e9
    rate = count * tokens / median(rows["model"], "seconds")
    sizes = f"{model.num_parameters() / 1e6:.0f} M parameters, {count} x {tokens} tokens"
    print(f"### Forward and backward, {sizes}, target >= 0.5\n")
    head = ["tokens/s", "GFLOP/s", f"matrix product, {size} x {size}: GFLOP/s", "share"]
    cells = [f"{rate:,.0f}", *(f"{median(part, 'rate'):,.0f}" for part in rows.values())]
    table(head, [[*cells, ratio(rows["model"], rows["product"], "rate")]])


def operations(model: PreTrainedModel, count: int, tokens: int) -> float:
    """Floating-point operations of forward and backward, three times the forward ones: two per weight of a linear layer and
    token, and four per width of attention and pair of tokens, of which causality leaves half."""
    linear = sum(module.weight.numel() for module in model.modules() if isinstance(module, torch.nn.Linear))
    heads = model.config.num_attention_heads
    width = heads * getattr(model.config, "head_dim", model.config.hidden_size // heads)
    return 3.0 * count * tokens * (2 * linear + 2 * tokens * width * model.config.num_hidden_layers)


def likelihood(log_probs: Tensor, signals: Signals) -> Mapping[str, Tensor]:
    return {"likelihood": -(log_probs * signals["weight"]).sum()}


# ---- padding


def padding(arguments: argparse.Namespace, trainer: Any) -> None:
    """`trainer` makes the parts of a run from overrides."""
    rows = []
    for style in ("transcript", "windowed"):
        made = trainer(arguments, "method=grpo", "analyzer.view=document", f"context.style={style}")
        played = rl.play(made, made.tasks[: made.parts.config.rollout.tasks], 2)
        lengths = [len(sample.token_ids) for one in played for sample in made.parts.context.samples(one)]
        for budget in (made.parts.config.model.micro_batch_tokens, 16384):
            batches = batches_by_tokens(lengths, budget)
            share = 1 - sum(lengths) / sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
            sizes = f"{min(lengths)} to {max(lengths)}"
            rows.append([style, str(len(lengths)), sizes, f"{budget:,}", str(len(batches)), f"{share:.1%}"])
    print("### Padding of an update's samples, real games, target under 10%\n")
    table(["style", "samples", "tokens each", "tokens a batch", "batches", "padding"], rows)
