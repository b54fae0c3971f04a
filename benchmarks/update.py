"""Speed of a whole update and of its parts: seconds and tokens per second by phase, every ratio from one interleaved run.

    python benchmarks/update.py [PART ...] [--model FOLDER] [--threads 2] [--rounds 5] [--cpu-seconds]
                                [--device cpu] [--shape NAME]

    methods   a SEED update against a GRPO update, on the demo's games and on a longer shape
    trl       a GRPO update against TRL's GRPOTrainer (needs `pip install trl`; left out with a sentence without it)
    length    a GRPO update against the length of its episodes, for both context styles
    sampler   sampling against `model.generate`
    matmul    forward and backward of a 35 M model against the machine's matrix products
    padding   the share of padding in the batches of an update's trajectories

FOLDER is a model after stage 1 (the packaged one cannot analyse, so its analyses are as long as they may be). `--shape`
takes random weights in a large model's shape instead, for a GPU: `--device cuda --shape qwen3-1.7b`. The learning rate is so
small that every round plays the same episodes. What a table compares runs in turn, A B A B; a ratio is the median over
rounds, with the smallest and the largest.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pieces
import torch
from measuring import Row, interleaved, median, ratio, table
from pieces import matmul, sampler
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen3Config

from seed_opd.config import Config, load
from seed_opd.environments import Action, Environment, Observation, make
from seed_opd.environments.base import Outcome
from seed_opd.policy.context import make_context
from seed_opd.policy.rollout import Player
from seed_opd.training import rl
from seed_opd.training.setup import Parts, model_path, train_tasks
from seed_opd.trajectory import Task, read_jsonl

PHASES = ("rollout", "analysis", "scoring", "learning")
NEVER = 10**6
"""A rhythm of evaluations, checkpoints and notes that no run here reaches."""

SHAPES: dict[str, Any] = {  # from the models' config.json
    "qwen3-1.7b": lambda: Qwen3Config(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=40960, tie_word_embeddings=True,
    ),
    "qwen2.5-3b": lambda: Qwen2Config(
        vocab_size=151936, hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
        num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True,
    ),
}  # fmt: skip
LONGER = [
    "environment.max_steps=30",
    "context.max_response_tokens=64",
    "context.max_prompt_tokens=4096",
    "analyzer.max_prompt_tokens=4096",
    "rollout.tasks=2",
]


# ---- whole updates


def trainer(arguments: argparse.Namespace, *overrides: str) -> rl.Trainer:
    """The parts of a run, with a learning rate that changes nothing, and nobody to tell."""
    made = rl.prepare(config(arguments, *overrides), Path(tempfile.mkdtemp()), arguments.model, None)
    made.display.console.quiet = True
    return made


def config(arguments: argparse.Namespace, *overrides: str) -> Config:
    quiet = [f"updates={NEVER}", f"keep_trajectories={NEVER}", "optimizer.learning_rate=1e-12"]
    placed = [f"model.device={arguments.device}", f"model.dtype={arguments.dtype}", f"threads={arguments.threads}"]
    return load("demo", [*quiet, *placed, *overrides])


def update(made: rl.Trainer) -> Row:
    """One update; its seconds and tokens by phase."""
    start = time.perf_counter()
    rl.run_update(made, 2)  # the first update is written to the run folder
    seconds = time.perf_counter() - start
    *_, row = (row for row in read_jsonl(made.folder.metrics) if row["kind"] == "train")
    return {name: value for name, value in row.items() if isinstance(value, int | float)} | {"seconds": seconds}


def update_cells(rows: Sequence[Row]) -> list[str]:
    """Seconds of the whole and of each phase, with the phase's tokens per second."""
    cells = [f"{median(rows, 'seconds'):.1f}"]
    for phase in PHASES:
        seconds, tokens = median(rows, f"seconds/{phase}"), median(rows, f"tokens/{phase}")
        cells.append(f"{seconds:.1f} ({tokens / seconds:,.0f}/s)" if seconds > 0.01 and tokens else f"{seconds:.1f}")
    return cells


def without_end(made: rl.Trainer) -> rl.Trainer:
    """Responses run to `context.max_response_tokens`; the action is read from their beginning."""
    made.parts.engine.sampler.end_ids = frozenset()  # type: ignore[attr-defined]
    return made


def methods(arguments: argparse.Namespace) -> None:
    view = f"analyzer.view={arguments.view}"
    shapes = {"demo": [], "longer: 16 episodes of at most 30 steps, responses forced to 64 tokens": LONGER}
    for title, overrides in shapes.items():
        made = {name: trainer(arguments, f"method={name}", view, *overrides) for name in ("grpo", "seed")}
        if overrides:
            made = {name: without_end(one) for name, one in made.items()}
        rows = interleaved(arguments.rounds, {name: (lambda one=one: update(one)) for name, one in made.items()})
        steps, responses = (median(rows["seed"], name) for name in ("episode/steps", "tokens/rollout"))
        print(f"### SEED against GRPO, {title}: {steps:.1f} steps an episode, {responses:,.0f} response tokens\n")
        head = ["seconds (tokens/s)", "update", *PHASES]
        table(head, [[name.upper(), *update_cells(part)] for name, part in rows.items()])
        print(f"SEED / GRPO: {ratio(rows['seed'], rows['grpo'])}, target <= 1.15\n", flush=True)


def length(arguments: argparse.Namespace) -> None:
    print(
        "### A GRPO update of 8 episodes against their length: games that do not end, responses forced to 16 tokens\n",
        flush=True,
    )
    rl.check_update = lambda row: []  # the tiny policy was never shown a windowed prompt, and its actions there are invalid
    works = {}
    for style in ("transcript", "windowed"):
        for steps in (5, 10, 20, 40):
            sizes = [f"environment.max_steps={steps}", "context.max_prompt_tokens=4096", "context.max_response_tokens=16"]
            kind = ["method=grpo", "analyzer.view=document", f"context.style={style}", "rollout.tasks=1"]
            made = without_end(trainer(arguments, *kind, *sizes))
            made.parts.player.new_environment = lambda one=made: unending(one.parts.config)
            works[f"{style} {steps}"] = lambda one=made: update(one)
    rows = interleaved(max(1, arguments.rounds // 2), works)
    cells = []
    for name, part in rows.items():
        style, steps = name.split()
        first = median(rows[f"{style} 5"], "seconds")
        seconds, tokens = median(part, "seconds"), median(part, "tokens/learning")
        cells.append([style, steps, f"{seconds:.1f}", f"{seconds / first:.1f}", f"{tokens:,.0f}", *update_cells(part)[1:]])
    table(["style", "steps", "seconds", "against 5 steps", "tokens learned from", *PHASES], cells)


def unending(settings: Config) -> Environment:
    """A game that goes on after it is won."""
    environment = make(settings.environment.name, **settings.environment.options)
    step = environment.step
    environment.step = lambda action: replace(step(action), done=False)  # type: ignore[method-assign]
    return environment


# ---- against TRL


class OneTurn(Environment):
    """A game of one answer: the prompt is that of a household game, the reward the variety of the letters."""

    name, categories, max_steps = "one_turn", ("all",), 1

    def __init__(self, prompts: Sequence[str]) -> None:
        self.prompts = prompts

    def tasks(self, split: str) -> list[Task]:
        return [Task(self.name, split, index) for index in range(len(self.prompts))]

    def category(self, task: Task) -> str:
        return "all"

    def reset(self, task: Task) -> Observation:
        return Observation(self.prompts[task.index], "answer")

    def step(self, action: str) -> Outcome:
        return Outcome("", variety(action), True, True, variety(action))

    def parse(self, response: str) -> Action:
        return Action(response, True)

    def action_span(self, response: str) -> tuple[int, int]:
        return 0, len(response)

    def windowed_prompt(self, *arguments: Any) -> str:
        raise NotImplementedError

    def opening(self, goal: str, observation: str, skill: str | None) -> str:
        return observation


def variety(text: str) -> float:
    return len(set(text)) / 50


def trl(arguments: argparse.Namespace, tokens: int = 64) -> None:
    if importlib.util.find_spec("trl") is None:
        print("trl: not measured, the package is not installed in this environment.\n")
        return
    from transformers import TrainerCallback

    made = one_turn(arguments, tokens)
    rows: dict[str, list[Row]] = {"ours": [], "TRL": []}

    class Turns(TrainerCallback):
        """Takes the time of each of TRL's steps, and runs one of ours behind it."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.start = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            rows["TRL"].append({"seconds": time.perf_counter() - self.start})
            rows["ours"].append(update(made))

    peer = trl_trainer(arguments, made, tokens)
    peer.add_callback(Turns())
    peer.train()
    ours, theirs = rows["ours"][1:], rows["TRL"][1:]  # the first is the warm-up
    settings = made.parts.config.rollout
    print(f"### GRPO update, {settings.tasks} prompts x {settings.group} answers of exactly {tokens} tokens\n")
    cells = [["ours", *update_cells(ours)], ["TRL", f"{median(theirs, 'seconds'):.1f}", *[""] * len(PHASES)]]
    table(["seconds (tokens/s)", "update", *PHASES], cells)
    print(f"ours / TRL: {ratio(ours, theirs)}, target <= 0.5\n", flush=True)


def one_turn(arguments: argparse.Namespace, tokens: int) -> rl.Trainer:
    sizes = ["environment.max_steps=1", f"context.max_response_tokens={tokens}", "optimizer.minibatches=1"]
    made = without_end(trainer(arguments, "method=grpo", "analyzer.view=document", *sizes))
    engine, settings = made.parts.engine, made.parts.config
    games = make(settings.environment.name, **settings.environment.options)
    starts = [games.reset(task) for task in train_tasks(settings, games)[: settings.rollout.tasks]]
    prompts = [games.opening(start.goal, start.text, None) for start in starts]
    context = make_context("transcript", engine.tokenizer, OneTurn(prompts), window=0, max_prompt_tokens=4096)
    player = Player(
        engine,
        context,
        lambda: OneTurn(prompts),
        max_steps=1,
        max_response_tokens=tokens,
        invalid_penalty=0.0,
        concurrency=settings.rollout.concurrency,
    )
    made.parts = Parts(settings, OneTurn(prompts), engine, context, player)
    made.tasks = made.parts.environment.tasks("train")  # type: ignore[assignment]
    return made


def trl_trainer(arguments: argparse.Namespace, made: rl.Trainer, tokens: int) -> Any:
    """TRL's GRPO on the same prompts, answers, reference policy and reward, all in one batch."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    tokenizer, settings = made.parts.engine.tokenizer, made.parts.config.rollout
    openings = [made.parts.context.template.opening(text) for text in made.parts.environment.prompts]  # type: ignore[attr-defined]
    options = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=settings.tasks * settings.group,
        num_generations=settings.group,
        max_completion_length=tokens,
        generation_kwargs={"min_new_tokens": tokens},
        temperature=1.0,
        top_k=0,
        beta=0.01,
        learning_rate=1e-12,
        lr_scheduler_type="constant",
        max_steps=arguments.rounds + 1,
        gradient_checkpointing=False,
        use_cpu=arguments.device == "cpu",
        bf16=arguments.dtype == "bfloat16",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32),
        reward_funcs=lambda completions, **_: [variety(text) for text in completions],
        args=options,
        train_dataset=Dataset.from_dict({"prompt": [tokenizer.decode(ids) for ids in openings]}),
        processing_class=tokenizer,
    )


def padding(arguments: argparse.Namespace) -> None:
    pieces.padding(arguments, trainer)


PARTS = {part.__name__: part for part in (methods, trl, length, sampler, matmul, padding)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--model", type=Path)
    parser.add_argument("--view", choices=("document", "conversation"), default=load("demo").analyzer.view)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-seconds", action="store_true", help="count them instead of the clock's, on a busy machine")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shape", choices=sorted(SHAPES))
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"PART: {', '.join(sorted(unknown))} is unknown; choose from {', '.join(PARTS)}")
    torch.set_num_threads(arguments.threads)
    if arguments.cpu_seconds:
        time.perf_counter = time.process_time  # for the ledger of an update as well
    arguments.dtype = "float32" if arguments.device == "cpu" else "bfloat16"
    with tempfile.TemporaryDirectory() as folder:
        arguments.model = (
            random_weights(arguments.shape, Path(folder)) if arguments.shape else arguments.model or model_path("tiny")
        )
        machine = torch.cuda.get_device_name() if arguments.device != "cpu" else f"{arguments.threads} CPU threads"
        clock = "CPU seconds" if arguments.cpu_seconds else "seconds of the clock"
        print(f"{machine}, torch {torch.__version__}, {arguments.dtype}, {arguments.rounds} rounds, {clock}\n", flush=True)
        for name in arguments.parts or PARTS:
            PARTS[name](arguments)


def random_weights(shape: str, folder: Path) -> Path:
    """A model folder in a large model's shape, with the tiny policy's tokenizer."""
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(SHAPES[shape](), dtype=torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model_path("tiny")).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
