"""A run, resolved before anything is loaded or fetched: its work, its memory, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seed_opd.config import Config
from seed_opd.environments import make
from seed_opd.errors import UserError
from seed_opd.evaluation.panels import panel_tasks
from seed_opd.methods import Method, resolve
from seed_opd.training.memory_plan import Load, MemoryPlan, adapter_parameters, memory_plan
from seed_opd.training.missing import Missing, missing
from seed_opd.training.setup import model_path
from seed_opd.training.shapes import Shape, config_of, shape_of
from seed_opd.training.workload import Workload, workload, writes_skills

GIB = 2**30
RESERVE = 0.1
"""Share of a GPU's memory that is left to contexts, workspaces and fragments."""

SKILL_FRAME = 64
"""Tokens around a skill in a prompt: a title and a sentence."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a config comes to. `shape` is None where the model's sizes are not known here, or a server holds the model."""

    config: Config
    method: Method
    processes: int
    work: Workload
    panels: dict[str, int | None]
    """Games of each panel, or their bound where the data are missing or too much to open for a plan; None is all."""
    shape: Shape | None
    missing: list[Missing]

    @property
    def memory(self) -> MemoryPlan | None:
        """None where the shape is not."""
        if self.shape is None:
            return None
        return memory_plan(self.shape, load_of(self.config, self.method, self.shape, self.processes))


def plan(config: Config, model: Path | None = None, processes: int = 1) -> Plan:
    """Resolve a run on so many processes; what is missing for it is no error."""
    method = resolve(config.method, config.overrides)
    try:
        shape = known_shape(config, model)
    except UserError:
        shape = None
    lacking = missing(config, model)
    return Plan(config, method, processes, workload(config, method), _panels(config), shape, lacking)


def known_shape(config: Config, model: Path | None = None) -> Shape:
    """The model's shape; raises UserError where it is not known, or where no process of this run holds the model."""
    if config.engine.kind != "torch":
        raise UserError(f"engine.kind: {config.engine.kind!r} keeps the model on its server; there is nothing to plan here.")
    return shape_of(config_of(model or model_path(config.model.path)))


def load_of(config: Config, method: Method, shape: Shape, processes: int) -> Load:
    """What a config asks of one process, each length at its bound."""
    context, analyzer, model = config.context, config.analyzer, config.model
    acting = context.max_prompt_tokens + context.max_response_tokens
    skill = min(analyzer.max_tokens, analyzer.max_characters) + SKILL_FRAME if method.skills else 0
    analysis = analyzer.max_prompt_tokens + analyzer.max_tokens
    acted = config.rollout.tasks * config.rollout.group
    analyzed = max(acted if writes_skills(config, method) else 0, config.evaluation.probe)
    return Load(
        processes=processes,
        compute={"float32": 4, "bfloat16": 2}[model.dtype],
        micro_batch=model.micro_batch_tokens,
        logits_chunk=model.logits_chunk,
        recompute=model.recompute,
        offload=model.offload,
        reference=method.divergence.weight > 0 and model.lora is None,
        adapters=adapter_parameters(shape, model.lora.rank, model.lora.targets) if model.lora else 0,
        episodes=at_once(config, max(acted, config.stage1.tasks * config.stage1.rollouts), processes),
        prompt=context.max_prompt_tokens,
        response=context.max_response_tokens,
        analyses=at_once(config, analyzed, processes),
        analysis_prompt=analyzer.max_prompt_tokens,
        analysis=analyzer.max_tokens,
        scored=acting + skill,
        learned=max(acting, analysis if config.replay_stage1 else 0),
        pair=config.stage1.max_tokens,
    )


def at_once(config: Config, count: int, processes: int) -> int:
    """How many of `count` responses a process samples together with the torch sampler."""
    return min(config.rollout.concurrency, -(-count // processes)) if config.engine.sampler == "torch" else 0


def room(config: Config, gibibytes: float) -> int:
    """Bytes of a GPU that the plan may fill: without a reserve, and without what vLLM in the same process takes."""
    taken = float(config.engine.options.get("gpu_memory_utilization", 0.9)) if config.engine.sampler == "vllm" else 0.0
    return int(gibibytes * GIB * max(0.0, 1.0 - RESERVE - taken))


def _panels(config: Config) -> dict[str, int | None]:
    bounds: dict[str, int | None] = dict.fromkeys(config.evaluation.panels, config.evaluation.tasks)
    try:
        environment = make(config.environment.name, **config.environment.options)
    except UserError:
        return bounds
    if not environment.packaged:
        return bounds
    return {
        name: len(panel_tasks(environment, split, config.evaluation.tasks))
        for name, split in config.evaluation.panels.items()
    }
