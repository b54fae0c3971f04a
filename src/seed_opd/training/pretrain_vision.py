"""Make the tiny policy that sees: from boards and cards that it reads aloud, and from scripted play that it imitates.

    python -m seed_opd.training.pretrain_vision OUT --steps 6000

It begins with much reading: a picture, and the text of what is on it. OUT holds the model, written every 500 steps; the same
command goes on from there. The README of `seed_opd/policy/tiny_vision` says how the packaged one was made and measured.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from seed_opd.files import write_atomically
from seed_opd.policy.context import ChatTemplate, TranscriptContext
from seed_opd.policy.engine import Sampling
from seed_opd.policy.loading import Placement, load_policy, load_tokenizer
from seed_opd.policy.samples import Sample
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.training.demonstrations import Teacher, teach, teacher
from seed_opd.training.pretrain import encode, make_tokenizer, texts_about
from seed_opd.training.sft import likelihood_loss
from seed_opd.trajectory import IMAGE, Step

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
PATCH = 8
"""Pixels of a patch's side; four patches are a token, so that a cell of Sokoban's picture is one."""

SIZE = 96
"""Pixels of a picture's side."""

QUESTION = f"{IMAGE}\nWhat is on the picture? Write it as text."
BATCH = 12
"""Episodes and readings in an optimizer step."""


def teachers() -> dict[str, Teacher]:
    return {
        "sokoban": teacher("sokoban", 15, view="image", tile=SIZE // 6),
        "ezpoints": teacher("ezpoints", 8, view="image", size=SIZE),
    }


def make_model(folder: Path, seed: int) -> None:
    """Write a Qwen2.5-VL of about 1.5 million parameters with fresh weights, its tokenizer and its image processor."""
    tokenizer = make_tokenizer(_texts())
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=True) for mark in MARKS])
    start, end, image, video = (tokenizer.get_vocab()[mark] for mark in MARKS)
    torch.manual_seed(seed)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": -(-len(tokenizer) // 64) * 64,
            "hidden_size": 160,
            "intermediate_size": 480,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 8192,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 8, 8]},
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 96,
            "intermediate_size": 192,
            "num_heads": 4,
            "out_hidden_size": 160,
            "patch_size": PATCH,
            "fullatt_block_indexes": [1],
            "window_size": 4 * PATCH,
        },
        vision_start_token_id=start,
        vision_end_token_id=end,
        image_token_id=image,
        video_token_id=video,
        tie_word_embeddings=True,
    )
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(patch_size=PATCH, min_pixels=SIZE * SIZE // 4, max_pixels=4 * SIZE * SIZE).save_pretrained(
        folder
    )


def load_engine(folder: Path) -> TorchEngine:
    return TorchEngine(load_policy(folder, Placement()), load_tokenizer(folder), betas=(0.9, 0.95), micro_batch_tokens=4096)


def readings(template: ChatTemplate, guide: Teacher, seed: int) -> Iterator[tuple[Sample, str]]:
    """An endless stream of pictures to read, as samples, and what is on them."""
    for episode in teach(guide, seed):
        for step in episode.trajectory.steps[:: max(1, len(episode.trajectory.steps) // 2)]:
            yield reading(template, step)


def reading(template: ChatTemplate, step: Step) -> tuple[Sample, str]:
    prompt = template.opening(QUESTION, [step.image or ""])
    answer = [*template.tokenizer.encode(step.observation, add_special_tokens=False), template.end_id]
    return Sample((*prompt, *answer), ((len(prompt), len(prompt) + len(answer)),)), step.observation


def batches(engine: TorchEngine, seed: int, first: int, steps: int) -> Iterator[list[Sample]]:
    """Readings and play of both games; the share of readings falls from three quarters to one.

    A seed has one stream; what goes on after a stop takes another one, so that nothing is shown twice.
    """
    template = ChatTemplate(engine.tokenizer, eye=engine.eye)
    guides, rng = teachers(), random.Random(f"vision/{seed}")
    seen = {name: readings(template, guide, seed) for name, guide in guides.items()}
    played = {name: _played(template, guide, seed + 1) for name, guide in teachers().items()}
    for step in range(first, steps):
        reading_share = 0.75 - 0.5 * min(1.0, 2 * step / steps)
        batch = []
        for _ in range(BATCH):
            name = rng.choice(list(guides))
            batch.append(next(seen[name])[0] if rng.random() < reading_share else next(played[name]))
        yield batch


def train(engine: TorchEngine, seed: int, first: int, steps: int, peak: float) -> Iterator[tuple[int, float]]:
    """Imitate, from the step after `first` on; yields each optimizer step's number and its loss in nats per token."""
    for number, batch in enumerate(batches(engine, seed + 2 * first, first, steps), start=first + 1):
        tokens = sum(sample.response_tokens for sample in batch)
        signals = [{"weight": torch.full((sample.response_tokens,), 1.0 / tokens)} for sample in batch]
        loss = engine.train(batch, signals, likelihood_loss)["loss/likelihood"]
        engine.step(peak * min(1.0, number / 100) * (0.55 + 0.45 * math.cos(math.pi * number / steps)))
        yield number, loss


def read_share(engine: TorchEngine, name: str, count: int, seed: int) -> float:
    """The share of words that it reads right on pictures of another seed: cells of rooms, words about cards.

    There are only 304 pairs of cards, so these it has seen.
    """
    template = ChatTemplate(engine.tokenizer, eye=engine.eye)
    shown = list(islice(readings(template, teachers()[name], seed), count))
    prompts = [list(sample.token_ids[: sample.spans[0][0]]) for sample, _ in shown]
    answers = engine.sample(prompts, Sampling(0.0, 120), ["read"] * len(prompts))
    right = total = 0
    for answer, (_, text) in zip(answers, shown, strict=True):
        words = str(engine.tokenizer.decode(list(answer.ids), skip_special_tokens=True)).split()
        right += sum(a == b for a, b in zip(words, text.split(), strict=False))
        total += len(text.split())
    return right / total


def _played(template: ChatTemplate, guide: Teacher, seed: int) -> Iterator[Sample]:
    context = TranscriptContext(template, guide.environment, 4096)
    for episode in teach(guide, seed):
        yield from encode(context, episode)


def _texts() -> Iterator[str]:
    """Everything that the policy will ever read or write, what is on the pictures included."""
    for guide in teachers().values():
        for episode in islice(teach(guide, 0), 300):
            yield from texts_about(guide, episode)
            yield "\n".join(step.observation for step in episode.trajectory.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pretrain the tiny policy that sees.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model, state, progress = options.out / "model", options.out / "state", options.out / "progress.json"
    if not (model / "config.json").exists():
        make_model(model, options.seed)
    engine, first, start = load_engine(model), 0, time.time()
    if progress.exists():
        first = json.loads(progress.read_text())["step"]
        engine.load_state(model, state)
    losses = []
    for number, loss in train(engine, options.seed, first, options.steps, options.learning_rate):
        losses.append(loss)
        if number % 50 == 0:
            mean = round(sum(losses[-50:]) / len(losses[-50:]), 4)
            print(json.dumps({"step": number, "loss": mean, "seconds": round(time.time() - start)}), flush=True)
        if number % 500 == 0 or number == options.steps:
            engine.publish()
            seen = {name: round(read_share(engine, name, 64, seed=999), 3) for name in teachers()}
            print(json.dumps({"step": number, "read": seen}), flush=True)
            engine.save(model)
            engine.save_state(state)
            write_atomically(progress, json.dumps({"step": number}))


if __name__ == "__main__":
    main()
