"""A plan as tables to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from seed_opd.config import Config
from seed_opd.evaluation.compare import TableText
from seed_opd.methods import resolve
from seed_opd.training.memory_advice import Advice, advise
from seed_opd.training.memory_plan import MemoryPlan, memory_plan
from seed_opd.training.plan import GIB, Plan, known_shape, load_of, room


def plan_tables(plan: Plan) -> Iterator[TableText]:
    """The plan of a run: settings, work, and memory where the model's shape is known."""
    yield TableText(f"Recipe {plan.config.name}", ["setting", ""], list(_settings(plan)))
    yield TableText("Work (upper bounds)", ["", "each update", "whole run"], list(_work(plan)))
    yield TableText("Stage 1 (upper bounds)", ["", ""], list(_stage1(plan)))
    memory = plan.memory
    if memory is not None:
        yield memory_table(memory, plan.processes)


def missing_sentences(plan: Plan) -> Iterator[str]:
    """What the run lacks, each with what mends it; one sentence when nothing is missing."""
    if plan.shape is None:
        yield "The model's memory is not planned: its shape is not known here, or a server holds it."
    for one in plan.missing:
        yield f"Missing: {one.what} ({one.reason}) -> {one.mend}"
    if not plan.missing:
        yield "Nothing is missing."


def memory_table(memory: MemoryPlan, processes: int) -> TableText:
    """Bytes by part, one column per phase."""
    parts = dict.fromkeys(part for phase in memory.device.values() for part in phase)
    rows = [[part, *(_size(phase.get(part, 0)) for phase in memory.device.values())] for part in parts]
    rows.append(["total", *(_size(total) for total in memory.totals.values())])
    title = f"Memory of each of {processes} processes, GiB" if processes > 1 else "Memory of one process, GiB"
    return TableText(title, ["part", *memory.device], rows)


def fit(config: Config, model: Path | None, processes: int, gibibytes: float) -> tuple[bool, list[TableText], str]:
    """Whether a run fits on so many GPUs of that size; the tables that show why, and a sentence with the verdict."""
    shape, limit = known_shape(config, model), room(config, gibibytes)
    memory = memory_plan(shape, load_of(config, resolve(config.method, config.overrides), shape, processes))
    tables, phase = [memory_table(memory, processes)], max(memory.totals, key=lambda name: memory.totals[name])
    fits = memory.peak <= limit
    if not fits:
        advice = advise(config, shape, processes, limit)
        tables.append(advice_table(advice, enough=bool(advice) and advice[-1].peak <= limit))
    verdict = f"{'Fits' if fits else 'Does not fit'}: {memory.peak / GIB:.1f} GiB in {phase}"
    return fits, tables, f"{verdict}, of {limit / GIB:.1f} that {gibibytes:g} leave to it. {cpu_sentence(memory)}"


def cpu_sentence(memory: MemoryPlan) -> str:
    """What lies in CPU memory beside a GPU."""
    parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in memory.cpu.items())
    return f"In CPU memory beside a GPU, GiB: {parts} (that in the main process alone)."


def advice_table(advice: Sequence[Advice], enough: bool) -> TableText:
    """What to change, each with the peak that it and all before it lead to."""
    title = "To make it fit, in this order" if enough else "What helps, but is not enough"
    return TableText(title, ["change", "peak with it, GiB"], [[one.change, f"{one.peak / GIB:.1f}"] for one in advice])


def _settings(plan: Plan) -> Iterator[list[str]]:
    config, method, shape = plan.config, plan.method, plan.shape
    size = f", {shape.parameters / 1e9:.2f} billion parameters" if shape else ""
    trained = f", LoRA of rank {config.model.lora.rank}" if config.model.lora else ""
    yield ["method", f"{method.name}: {method.summary}"]
    yield ["model", f"{config.model.path}{size}, {config.model.dtype}{trained}"]
    yield ["engine", f"{config.engine.kind}, sampler {config.engine.sampler}"]
    yield ["environment", f"{config.environment.name} {config.environment.options or ''}".strip()]
    yield [
        "context",
        f"{config.context.style}, {_window(plan)}at most {config.context.max_prompt_tokens:,} tokens of prompt",
    ]
    yield ["analyzer", config.analyzer.kind if method.skills else "none"]
    yield [
        "optimizer",
        f"AdamW, learning rate {config.optimizer.learning_rate:g}, {_count(config.optimizer.warmup, 'update')} of warm-up",
    ]
    yield ["loss", ", ".join(f"{name} {weight:g}" for name, weight in _weights(plan).items() if weight)]
    yield ["seed", str(config.seed)]


def _window(plan: Plan) -> str:
    return f"{plan.config.context.window} steps of history, " if plan.config.context.style == "windowed" else ""


def _weights(plan: Plan) -> dict[str, float]:
    method = plan.method
    return {
        "surrogate": method.surrogate.weight,
        "KL": method.divergence.weight,
        "distillation": method.distillation.weight if method.distillation else 0.0,
    }


def _work(plan: Plan) -> Iterator[list[str]]:
    config, work = plan.config, plan.work

    def row(name: str, each: int) -> list[str]:
        return [name, f"{each:,}", f"{work.updates * each:,}"]

    yield ["updates", "", f"{work.updates:,}"]
    yield row(f"trajectories ({config.rollout.tasks} tasks x {config.rollout.group})", work.trajectories)
    yield row(f"steps (episodes of at most {config.environment.max_steps})", work.steps)
    yield row("tokens of prompts", work.prompt_tokens)
    yield row("tokens of responses", work.response_tokens)
    if work.analysis_tokens:
        yield row("tokens of analyzer prompts", work.analysis_prompt_tokens)
        yield row("tokens of analyses", work.analysis_tokens)
    yield row("scorings of what was sampled", work.scorings)
    yield row("optimizer steps", work.optimizer_steps)
    games = " + ".join(f"{'all' if count is None else count} {name}" for name, count in plan.panels.items())
    yield [
        f"evaluations (before, every {config.evaluation.every} updates, after)",
        f"{games} games",
        f"{work.evaluations:,}",
    ]
    yield ["checkpoints", "", f"{work.checkpoints:,}"]


def _stage1(plan: Plan) -> Iterator[list[str]]:
    settings, work = plan.config.stage1, plan.work
    yield [f"episodes ({settings.tasks} tasks x {settings.rollouts})", f"{work.stage1_episodes:,}"]
    yield [f"analyses to train on, by the analyzer {settings.analyzer}", f"{work.stage1_pairs:,}"]
    yield [f"optimizer steps ({_count(settings.epochs, 'epoch')}, {settings.batch} pairs each)", f"{work.stage1_steps:,}"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / GIB:.2f}" if size else "-"
