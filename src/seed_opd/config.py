"""A whole run as one typed, validated object: a YAML recipe plus dotted overrides.

Every field carries one line of documentation; `seed-opd train --help` points here, and a run's own `config.yaml` is this
object with nothing left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seed_opd.errors import UserError

TINY = "tiny"
PACKAGED = (TINY, "tiny-search", "tiny-vision", "tiny-webshop")
"""The packaged tiny policies; their folders under `policy` have "_" for "-"."""


class Section(BaseModel):
    """A part of the config: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class LoraConfig(Section):
    rank: int = Field(default=32, ge=1)
    """Width of the adapters."""
    alpha: int = Field(default=32, gt=0)
    """The adapters' output is scaled by alpha / rank."""
    targets: list[str] | Literal["all-linear"] = "all-linear"
    """Names of the layers that get one."""


class ModelConfig(Section):
    path: str = TINY
    """Hugging Face folder or hub name of a model; `tiny` and those that begin with `tiny-` are packaged."""
    device: str = "auto"
    """Where it runs, as torch names it; `auto` is the GPU where there is one, else the CPU."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the arithmetic; the trained weights and their sums over processes are float32 in any case."""
    template_options: dict[str, Any] = {}
    """Passed to the chat template as they are, for example {enable_thinking: false}."""
    image_options: dict[str, Any] = {}
    """Passed to the image processor of a model that sees, for example {min_pixels: 65536, max_pixels: 4194304}."""
    micro_batch_tokens: int = Field(default=16384, ge=1)
    """Padded tokens in one forward pass; bounds memory, changes no result."""
    logits_chunk: int = Field(default=1024, ge=1)
    """Response tokens whose logits exist at a time; bounds memory, changes no result."""
    lora: LoraConfig | None = None
    """Train adapters instead of the weights (needs the extra `lora`); without them, the model is the reference policy."""
    recompute: bool = False
    """Compute activations again in the backward pass instead of keeping them: less memory, a third more time."""
    compile: bool = False
    """Let torch compile the layers; pays on long runs."""
    offload: Literal["none", "reference", "training"] = "none"
    """Keep in CPU memory what a GPU has no room for: the reference policy, or the optimizer's state and weights as well."""


class EngineConfig(Section):
    kind: Literal["torch", "tinker"] = "torch"
    """Who trains: this process (and those that torchrun started beside it), or a server that speaks the Tinker protocol."""
    sampler: Literal["torch", "vllm", "vllm-server"] = "torch"
    """Who samples for the torch engine: itself, vLLM in this process, or a vLLM server (extra `vllm`)."""
    url: str = ""
    """Where the Tinker or vLLM server listens."""
    api_key_variable: str | None = None
    """Name of the environment variable that holds the server's key; none for a server without keys."""
    options: dict[str, Any] = {}
    """Passed to vLLM as they are, for example {gpu_memory_utilization: 0.5}."""

    @property
    def shares_weights(self) -> bool:
        """Whether the sampler draws from the very weights that are trained, and not from a copy that is sent."""
        return (self.kind, self.sampler) == ("torch", "torch")


class EnvironmentConfig(Section):
    name: str = "alfworld"
    """Which environment."""
    options: dict[str, Any] = {}
    """Passed to the environment as they are."""
    max_steps: int = Field(default=30, ge=1)
    """An episode is cut after this many steps."""
    train_split: str = "train"
    """The split that training draws its tasks from."""
    train_tasks: int | None = Field(default=None, ge=1)
    """Stage 2 uses only this many training tasks, the first of a seeded shuffle; all by default."""


class ContextConfig(Section):
    style: Literal["windowed", "transcript"] = "transcript"
    """`windowed`: each step is a prompt of its own (paper). `transcript`: the episode is one growing conversation."""
    window: int = Field(default=5, ge=0)
    """Steps of history in a windowed prompt (paper, ALFWorld: 5)."""
    max_prompt_tokens: int = Field(default=2048, ge=64)
    """Longest prompt without the skill; the oldest middle of the history is dropped beyond it, and counted."""
    max_response_tokens: int = Field(default=512, ge=1)
    """Longest response."""


class RolloutConfig(Section):
    tasks: int = Field(default=16, ge=1)
    """Tasks per update (paper, ALFWorld: 16)."""
    group: int = Field(default=8, ge=1)
    """Trajectories per task (paper: 8)."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature; training needs 1, where the sampling policy is the trained one."""
    invalid_penalty: float = Field(default=0.1, ge=0)
    """Taken from a trajectory's return for each invalid action (paper: 0.1)."""
    concurrency: int = Field(default=128, ge=1)
    """Episodes that each process plays at the same time; bounds memory, changes no result."""

    @model_validator(mode="after")
    def _trainable(self) -> RolloutConfig:
        if self.temperature != 1.0:
            raise ValueError("rollout.temperature must be 1: at another one the sampled log-probs are not the policy's")
        return self


class AnalyzerConfig(Section):
    kind: Literal["policy", "rules", "remote"] = "policy"
    """Who writes the skills."""
    view: Literal["document", "conversation"] = "document"
    """What the policy reads as its own analyzer: the episode written out in one message (reference code), or the
    conversation that it played with one more message, which reads nothing twice (context.style: transcript)."""
    max_prompt_tokens: int = Field(default=16384, ge=64)
    """Longest analyzer prompt; the oldest middle steps of the episode are dropped beyond it, and counted."""
    max_tokens: int = Field(default=4096, ge=8)
    """Longest analysis (paper: 4096)."""
    max_characters: int = Field(default=600, ge=16)
    """Longest summary and longest skill; a longer one does not count."""
    general: bool = False
    """Ask for skills that hold beyond the episode, without names of single things and places (the reference code has such a
    sentence and does not use it). Stage 1 then teaches such skills too."""
    wrong: float = Field(default=0.0, ge=0, le=1)
    """Share of the trajectories that get another one's skill in stage 2, to study what wrong skills do."""
    wrong_from: Literal["other_task", "opposite_outcome"] = "other_task"
    """Whose skill that is."""
    constrained: bool = True
    """Decode the policy's analyses under the skill schema, so that they always parse."""
    base_url: str = "http://localhost:8000/v1"
    """Where a remote, OpenAI-compatible analyzer listens."""
    model: str = ""
    """Name of the remote model."""
    api_key_variable: str | None = None
    """Name of the environment variable that holds the remote key; none for a server without keys."""


class OptimizerConfig(Section):
    learning_rate: float = Field(default=1e-6, gt=0)
    """Learning rate of stage 2 (paper: 1e-6, constant)."""
    warmup: int = Field(default=0, ge=0)
    """Updates in which the rate rises to its value (reference code: none, a tenth of the run for Search)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay rates."""
    weight_decay: float = Field(default=0.01, ge=0)
    """AdamW's weight decay (reference code: 0.01)."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """The gradient is clipped to this norm."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps per update; a mini-batch is counted in trajectories."""


class Stage1Config(Section):
    tasks: int = Field(default=180, ge=1)
    """Training tasks to collect episodes of (paper: 180)."""
    rollouts: int = Field(default=8, ge=1)
    """Episodes per task (paper: 8)."""
    temperature: float = Field(default=0.4, ge=0)
    """Sampling temperature of the collection (reference code: 0.4)."""
    analyzer: Literal["rules", "remote", "policy"] = "rules"
    """Who annotates the episodes. `policy`: itself, as it comes; kept are the attempts with which it then plays better."""
    attempts: int = Field(default=4, ge=1)
    """`policy`: analyses that are sampled about each episode."""
    replays: int = Field(default=4, ge=1)
    """`policy`: episodes that are played with each of them."""
    epochs: int = Field(default=3, ge=1)
    """Passes over the pairs (reference code: 3)."""
    batch: int = Field(default=8, ge=1)
    """Pairs per optimizer step (reference code: 8)."""
    learning_rate: float = Field(default=5e-6, gt=0)
    """Peak learning rate (reference code: 5e-6 for text)."""
    warmup: float = Field(default=0.1, ge=0, le=1)
    """Share of the steps with a rising rate; a cosine follows."""
    validation: float = Field(default=0.1, ge=0, lt=1)
    """Share of the pairs held out."""
    max_tokens: int = Field(default=8192, ge=64)
    """Longest pair; a longer one is left out and counted."""
    acting_tasks: int = Field(default=48, ge=1)
    """Tasks of the first panel that are played before and after, to see what stage 1 costs in acting."""
    replay: float = Field(default=0.0, ge=0)
    """Own sampled acting episodes per analysis in every batch, so that acting is not forgotten (paper: 0)."""


class EvaluationConfig(Section):
    panels: dict[str, str] = {"seen": "valid_seen", "unseen": "valid_unseen"}
    """Panel name to split; every task of a split is played once."""
    tasks: int | None = Field(default=None, ge=1)
    """Play only this many tasks of each panel, spread evenly over it."""
    temperature: float = Field(default=0.4, ge=0)
    """Sampling temperature (paper: 0.4)."""
    every: int = Field(default=5, ge=1)
    """Updates between evaluations; the last update is always evaluated."""
    probe: int = Field(default=32, ge=0)
    """Finished episodes in the probe set that measures how well the policy analyses."""


class Config(Section):
    """One run."""

    name: str = "run"
    """Name of the run, and of its folder under `runs/`."""
    seed: int = 0
    """Every random draw comes from it."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads; all cores by default."""
    method: str = "seed"
    """A row of the methods table: `seed-opd methods`."""
    overrides: dict[str, Any] = {}
    """Changes to that row, for example {distillation: {weight: 0.02}}."""
    updates: int = Field(default=150, ge=1)
    """Rounds of rollout and learning (paper: 150)."""
    replay_stage1: float = Field(default=0.0, ge=0)
    """Stage-1 pairs per trajectory mixed into every update, so that analysing is not forgotten (paper: 0)."""
    save_every: int = Field(default=10, ge=1)
    """Updates between checkpoints."""
    keep_trajectories: int = Field(default=1, ge=1)
    """Write the trajectories of every n-th update to the run folder; the first and the last always."""
    tensorboard: bool = False
    """Also write TensorBoard events (needs the extra `tensorboard`)."""
    model: ModelConfig = ModelConfig()
    engine: EngineConfig = EngineConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    context: ContextConfig = ContextConfig()
    rollout: RolloutConfig = RolloutConfig()
    analyzer: AnalyzerConfig = AnalyzerConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    stage1: Stage1Config = Stage1Config()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _viewable(self) -> Config:
        if self.analyzer.view == "conversation" and self.context.style != "transcript":
            raise ValueError("analyzer.view: conversation needs context.style=transcript; use document")
        return self


def load(recipe: str, overrides: Sequence[str] = ()) -> Config:
    """Read a recipe (a packaged name or a YAML file) and apply dotted overrides such as `rollout.tasks=4`.

    Raises UserError, naming field, value and fix.
    """
    data = read_mapping("recipe", "recipes", recipe)
    for override in overrides:
        _override(data, override)
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise UserError("; ".join(sentence(detail) for detail in error.errors())) from error


def dump(config: Config) -> str:
    """The config as YAML, nothing left out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def written(path: Path) -> Config | None:
    """The config that a run wrote down, with the defaults of what is new since; None where it cannot be read as one."""
    try:
        return Config.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError):
        return None


def packaged(folder: str) -> list[str]:
    """Names of the YAML files in one of the package's folders."""
    entries = (resources.files("seed_opd") / folder).iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def heading(folder: str, name: str) -> str:
    """What a packaged YAML file says of itself: its first line, a comment."""
    return _text(folder, folder, name).partition("\n")[0].lstrip("# ")


def read_mapping(what: str, folder: str, name: str) -> dict[str, Any]:
    """A packaged name or a YAML file as a mapping; `what` is its word in messages. Raises UserError, naming the fix."""
    try:
        data = yaml.safe_load(_text(what, folder, name)) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{what}: {name!r} is not a YAML mapping: {_one_line(error)}.") from error
    if not isinstance(data, dict):
        raise UserError(f"{what}: {name!r} is not a YAML mapping; write it as lines of `section: {{field: value}}`.")
    return data


def _text(what: str, folder: str, name: str) -> str:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise UserError(f"{what}: there is no file {name!r}; packaged {folder} are {', '.join(packaged(folder))}.")
        return path.read_text(encoding="utf-8")
    if name not in packaged(folder):
        raise UserError(f"{what}: {name!r} is unknown; choose one of {', '.join(packaged(folder))}, or give a .yaml file.")
    return (resources.files("seed_opd") / folder / f"{name}.yaml").read_text(encoding="utf-8")


def _override(data: dict[str, Any], override: str) -> None:
    name, separator, value = override.partition("=")
    if not separator:
        raise UserError(f"override: {override!r} has no value; write it as section.field=value.")
    *sections, field = name.strip().split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise UserError(f"override: {name!r} goes below {section!r}, which is a value and not a section.")
    try:
        data[field] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UserError(f"override: {override!r} has a value that is not YAML: {_one_line(error)}.") from error


def sentence(detail: Any) -> str:
    """What pydantic found wrong, in words that name field, value and fix."""
    field = ".".join(str(part) for part in detail["loc"]) or "config"
    message = str(detail["msg"]).removeprefix("Value error, ")
    value = detail["input"]
    if detail["type"] == "extra_forbidden":
        return f"{field}: there is no such field; check its spelling"
    shown = "" if isinstance(value, dict | BaseModel) else f" {value!r} is not valid:"
    return f"{field}:{shown} {message[0].lower()}{message[1:]}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
