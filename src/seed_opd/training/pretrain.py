"""Make a tiny policy: its tokenizer and its weights, from scripted play of one environment or of several.

    python -m seed_opd.training.pretrain OUT tokenizer|readings|episodes|train --environments alfworld

Steps that each leave their files in OUT: the tokenizer, questions about pages and whole episodes as token sequences
(`readings-*.pt`, `episodes-*.pt`), the model. `train --on readings` comes before `train`, where an environment has readings.
The packaged ones lie in `seed_opd/policy/`; their READMEs say how they were made and what was measured.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from seed_opd.environments import NAMES
from seed_opd.hindsight.prompts import analyzer_prompt
from seed_opd.hindsight.rules import RulesAnalyzer
from seed_opd.hindsight.schema import render
from seed_opd.policy.context import ChatTemplate, TranscriptContext
from seed_opd.policy.loading import load_model
from seed_opd.policy.samples import Sample, batches_by_tokens
from seed_opd.training.demonstrations import Demonstration, Reading, Teacher, teach, teacher

END, START, PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHARD = 2000
VOCABULARY = 2048
"""Tokens of a tokenizer, without the tags."""

EMBEDDING_SCALE, EMBEDDING_RATE = 4.0, 0.2
"""Embeddings start this much larger than Qwen3's and learn this much slower than the rest. At the usual values Adam makes
all names alike before anything tells them apart, and copying one from the prompt is learned several times as slowly."""

LONGEST = 4096
"""Tokens of a conversation, beyond which its oldest steps go."""

TAGS = ("<think>", "</think>", "<action>", "</action>")
SEARCH_TAGS = ("<search>", "</search>", "<answer>", "</answer>", "<information>", "</information>")
SKILL_TITLE = "Episode-Level Skill"
TOKENIZER_EPISODES = 1200


def make_tokenizer(texts: Iterator[str], tags: Sequence[str] = TAGS, size: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Byte-level BPE over the texts, and a token for each tag of the response grammar.

    A name or number that is one token can be copied by attention alone, so `size` should hold the words of the texts.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in tags])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False
    )
    fast.chat_template = TEMPLATE
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """A Qwen3 of about 1.4 million parameters with fresh weights."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=160,
        intermediate_size=480,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(EMBEDDING_SCALE)
    return model


def tokenizer_texts(names: Sequence[str], max_steps: int, seed: int) -> Iterator[str]:
    """Everything that the policy will ever read or write."""
    for name in names:
        guide = teacher(name, max_steps)
        for episode in islice(teach(guide, seed), TOKENIZER_EPISODES):
            yield from texts_about(guide, episode)


def texts_about(guide: Teacher, episode: Demonstration) -> Iterator[str]:
    """The prompt of an episode, the analyzer's prompt about it, and its analysis."""
    trajectory = episode.trajectory
    yield guide.environment.opening(trajectory.goal, trajectory.steps[0].observation, episode.skill)
    yield analyzer_prompt(trajectory).text
    yield render(RulesAnalyzer().analyze([trajectory])[0])


def encode(context: TranscriptContext, episode: Demonstration) -> list[Sample]:
    """A demonstration as the token sequences that the trainer would score."""
    template, trajectory = context.template, episode.trajectory
    steps = tuple(
        replace(step, response_ids=(*template.tokenizer.encode(step.response, add_special_tokens=False), template.end_id))
        for step in trajectory.steps
    )
    whole = replace(trajectory, steps=steps)
    return context.samples(whole, episode.skill)


def write_episodes(out: Path, tokenizer: PreTrainedTokenizerFast, name: str, seed: int, count: int, max_steps: int) -> None:
    """Write `count` demonstrations of one environment and seed as token ids and spans, in shards."""
    guide, template = teacher(name, max_steps), ChatTemplate(tokenizer)
    stream = teach(guide, seed)
    for shard in range(0, count, SHARD):
        file = out / f"episodes-{seed:03d}-{shard:06d}-{name}.pt"
        episodes, samples = [], []
        for episode in islice(stream, min(SHARD, count - shard)):
            episodes.append(episode)
            samples += encode(TranscriptContext(template, guide.environment, LONGEST), episode)
        if file.exists():
            continue
        _write(file, samples)
        wins = {k: [e.trajectory.success for e in episodes if e.kind == k] for k in ("search", "workflow", "correction")}
        rates = {kind: round(sum(won) / max(1, len(won)), 3) for kind, won in wins.items()}
        tokens = sum(len(sample.token_ids) for sample in samples) // len(samples)
        print(json.dumps({"shard": file.name, "samples": len(samples), "tokens": tokens, "success": rates}), flush=True)


def encode_reading(template: ChatTemplate, reading: Reading) -> Sample:
    """A page and the questions about it as one conversation."""
    ids: list[int] = []
    spans = []
    for question, answer in reading.exchanges:
        ids += template.user_turn(question)[1:] if ids else template.opening(f"{reading.page}\n{question}")
        start = len(ids)
        ids += [*template.tokenizer.encode(answer, add_special_tokens=False), template.end_id]
        spans.append((start, len(ids)))
    return Sample(tuple(ids), tuple(spans))


def write_readings(out: Path, tokenizer: PreTrainedTokenizerFast, name: str, seed: int, count: int, max_steps: int) -> None:
    """Write questions about `count` pages of one environment and seed as token ids and spans."""
    template = ChatTemplate(tokenizer)
    readings = islice(teacher(name, max_steps).readings(seed), count)
    _write(out / f"readings-{seed:03d}-000000-{name}.pt", [encode_reading(template, reading) for reading in readings])


def _write(file: Path, samples: Sequence[Sample]) -> None:
    torch.save([(list(sample.token_ids), list(sample.spans)) for sample in samples], file.with_suffix(".part"))
    file.with_suffix(".part").rename(file)


def read_samples(out: Path, kinds: Sequence[str]) -> Iterator[Sample]:
    """All that lies in the shards of these kinds, those of several seeds and environments in turn."""
    files = [file for kind in kinds for file in out.glob(f"{kind}-*.pt")]
    for file in sorted(files, key=lambda file: file.stem.split("-")[2:] + file.stem.split("-")[1:2]):
        for ids, spans in torch.load(file, weights_only=True):
            yield Sample(tuple(ids), tuple(spans))


def _thin(samples: Sequence[Sample], tokenizer: PreTrainedTokenizerFast, share: float, seed: str) -> list[Sample]:
    """Leave out episodes with a skill, so that this share of them remains."""
    rng = random.Random(seed)
    return [
        sample
        for sample in samples
        if SKILL_TITLE not in tokenizer.decode(list(sample.token_ids[:120])) or rng.random() < share
    ]


def pretrain(
    model: Qwen3ForCausalLM,
    epochs: Sequence[Sequence[Sample]],
    *,
    batch_tokens: int,
    peak: float,
    prompt_weight: float,
    seed: int,
) -> Iterator[float]:
    """Train on whole episodes; yields the mean loss of each optimizer step, in nats per token.

    A token of a prompt counts `prompt_weight`, one of a response 1.
    """
    batches = [batch for number, epoch in enumerate(epochs) for batch in _batches(epoch, batch_tokens, f"{seed}/{number}")]
    embeddings = model.model.embed_tokens.weight
    others = [parameter for parameter in model.parameters() if parameter is not embeddings]
    groups = [{"params": [embeddings], "peak": EMBEDDING_RATE * peak}, {"params": others, "peak": peak}]
    optimizer = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    body = torch.compile(model.model, dynamic=True)
    for number, batch in enumerate(batches):
        height = min(1.0, (number + 1) / 100) * (0.55 + 0.45 * math.cos(math.pi * number / len(batches)))
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * height
        with torch.autocast("cpu", torch.bfloat16):
            loss = _loss(model, body, batch, prompt_weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield float(loss.detach())


def _batches(samples: Sequence[Sample], tokens: int, seed: str) -> list[list[Sample]]:
    batches = batches_by_tokens([len(sample.token_ids) for sample in samples], tokens)
    random.Random(seed).shuffle(batches)
    return [[samples[index] for index in batch] for batch in batches]


def _loss(model: Qwen3ForCausalLM, body: object, batch: Sequence[Sample], prompt_weight: float) -> torch.Tensor:
    """Weighted mean negative log-likelihood of all tokens; prompts count less, but teach to copy names from afar."""
    longest = -(-max(len(sample.token_ids) for sample in batch) // 64) * 64
    ids = torch.tensor([[*sample.token_ids, *[0] * (longest - len(sample.token_ids))] for sample in batch])
    weights = torch.zeros(ids.shape)  # (samples, tokens)
    for row, sample in enumerate(batch):
        weights[row, : len(sample.token_ids)] = prompt_weight
        weights[row, sample.positions] = 1.0
    hidden = body(input_ids=ids, use_cache=False).last_hidden_state  # type: ignore[operator]  # (samples, tokens, width)
    logits = model.lm_head(hidden[:, :-1]).float()  # (samples, tokens - 1, vocabulary)
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    flat = weights[:, 1:].flatten()
    return (losses * flat).sum() / flat.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description="Pretrain the tiny policy on scripted play.")
    parser.add_argument("out", type=Path)
    parser.add_argument("step", choices=("tokenizer", "readings", "episodes", "train"))
    parser.add_argument("--environments", nargs="+", choices=NAMES, default=["alfworld"])
    parser.add_argument("--episodes", type=int, default=60000, help="or pages, of each environment; to train on, of all")
    parser.add_argument("--on", nargs="+", choices=("readings", "episodes"), default=["episodes"], help="what to train on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY, help="tokens of the tokenizer, without the tags")
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument(
        "--prompt-weight", type=float, default=0.25, help="weight of a prompt's token beside 1 for a response's"
    )
    parser.add_argument("--skilled", type=float, default=1.0, help="share of the episodes with a skill that is used")
    parser.add_argument("--start", type=Path, help="model folder to go on from; fresh weights by default")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    model_folder = options.out / "model"
    if options.step == "tokenizer":
        tags = TAGS + SEARCH_TAGS if "search" in options.environments else TAGS
        texts = tokenizer_texts(options.environments, options.max_steps, seed=0)
        make_tokenizer(texts, tags, options.vocabulary).save_pretrained(model_folder)
        return
    tokenizer = PreTrainedTokenizerFast.from_pretrained(model_folder)
    if options.step != "train":
        write = write_readings if options.step == "readings" else write_episodes
        for name in options.environments:
            write(options.out, tokenizer, name, options.seed, options.episodes, options.max_steps)
        return
    _train(options, tokenizer, model_folder)


def _train(options: argparse.Namespace, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    model, start, losses = make_model(tokenizer, options.seed), time.time(), []
    if options.start:
        model.load_state_dict(load_model(options.start).state_dict())
    samples = list(islice(read_samples(options.out, options.on), options.episodes))
    epochs = [_thin(samples, tokenizer, options.skilled, f"{options.seed}/{epoch}") for epoch in range(options.epochs)]
    print(json.dumps({"parameters": model.num_parameters(), "sequences": sum(map(len, epochs))}), flush=True)
    steps = pretrain(
        model,
        epochs,
        batch_tokens=options.batch_tokens,
        peak=options.learning_rate,
        prompt_weight=options.prompt_weight,
        seed=options.seed,
    )
    for number, loss in enumerate(steps, start=1):
        losses.append(loss)
        if number % 50 == 0:
            print(
                json.dumps(
                    {"step": number, "loss": round(sum(losses[-50:]) / 50, 4), "seconds": round(time.time() - start)}
                ),
                flush=True,
            )
        if number % 500 == 0:
            model.save_pretrained(options.out / f"step-{number:05d}")
            tokenizer.save_pretrained(options.out / f"step-{number:05d}")
    model.bfloat16().save_pretrained(folder)


if __name__ == "__main__":
    main()
