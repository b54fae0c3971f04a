"""Peak memory of one process, from shapes alone: bytes by phase and part. Pure arithmetic, nothing is loaded.

What is described is the torch engine. One process in float32 computes with its weights. Otherwise weights, gradients and
Adam's moments lie in float32 pieces over the processes: to sample and to score, every process holds the whole model in the
format of the arithmetic; to learn, it gathers a layer or two at a time. Attention never has tokens x tokens scores in
memory. What a library keeps for itself (contexts, workspaces, fragments) is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from seed_opd.policy.sampler import READ_TOKENS
from seed_opd.training.shapes import Shape

FLOAT = 4
"""Bytes of a float32: trained weights, gradients, moments, norms and logits."""

DRAWING = 8 * FLOAT
"""Bytes per row and token of the vocabulary while one is drawn: logits and log-probs, and two sums in float64."""

SCORING = 4 * FLOAT
"""The same per response token while it is scored: logits, log-probs, probabilities, and their product for the entropy."""

LEARNING = 4 * FLOAT
"""The same in the backward pass: logits, log-probs, and the gradients of both."""

Parts = Mapping[str, int]
"""Bytes by part."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a run asks of one of its processes; all lengths in tokens, each at its bound, 0 where there is no such thing."""

    processes: int
    compute: int
    """Bytes per number of the arithmetic: 4 for float32, 2 for bfloat16."""
    micro_batch: int
    """Padded tokens of one forward pass."""
    logits_chunk: int
    """Response tokens whose logits exist at a time."""
    recompute: bool
    offload: Literal["none", "reference", "training"]
    reference: bool
    """A frozen copy of the weights is held as the reference policy."""
    adapters: int
    """Trained parameters of LoRA; 0 when the weights themselves are trained."""
    episodes: int
    """Episodes that this process plays at a time."""
    prompt: int
    response: int
    analyses: int
    """Analyses that it writes at a time."""
    analysis_prompt: int
    analysis: int
    scored: int
    """Longest sequence that is scored, with the skill in it."""
    learned: int
    """Longest sequence that stage 2 trains on."""
    pair: int
    """Longest sequence that stage 1 trains on."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of one process: on its device by phase and part, and in CPU memory by part."""

    device: Mapping[str, Parts]
    cpu: Parts

    @property
    def totals(self) -> dict[str, int]:
        return {phase: sum(parts.values()) for phase, parts in self.device.items()}

    @property
    def peak(self) -> int:
        """Bytes on the device in the largest phase."""
        return max(self.totals.values())


def memory_plan(shape: Shape, load: Load) -> MemoryPlan:
    """Bytes by phase (rollout, analysis, scoring, learning, stage 1) and part; phases that the run lacks are left out."""
    policy, reference, cpu = _policy(shape, load), _reference(shape, load), dict[str, int]()
    gradients: Parts = {"gradients": FLOAT * _trained(shape, load) // load.processes}
    if load.offload != "none":
        cpu |= reference
        reference = {}
    if load.offload == "training":
        cpu |= {**policy, **gradients}
        policy, gradients = {}, {}
    held = {**policy, **reference}
    phases: dict[str, Parts] = {
        "rollout": {**held, **_sampling(shape, load, load.episodes, load.prompt, load.response)},
        "analysis": {**held, **_sampling(shape, load, load.analyses, load.analysis_prompt, load.analysis)},
        "scoring": {**held, **_scoring(shape, load)},
        "learning": {**held, **gradients, **_learning(shape, load, load.learned)},
        "stage 1": {**policy, **gradients, **_learning(shape, load, load.pair)},
    }
    absent = {"rollout": not load.episodes, "analysis": not load.analyses}
    device = {phase: _present(parts) for phase, parts in phases.items() if not absent.get(phase)}
    return MemoryPlan(device, _present({**cpu, "loading and saving": _disk(shape, load)}))


def adapter_parameters(shape: Shape, rank: int, targets: Sequence[str] | Literal["all-linear"]) -> int:
    """Parameters of LoRA: for every layer that gets one, rank x (its inputs + its outputs)."""
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    ends = {
        "q_proj": shape.width + queries,
        "k_proj": shape.width + keys,
        "v_proj": shape.width + keys,
        "o_proj": queries + shape.width,
        "gate_proj": shape.width + shape.feed_forward,
        "up_proj": shape.width + shape.feed_forward,
        "down_proj": shape.feed_forward + shape.width,
    }
    names = ends if targets == "all-linear" else targets
    return shape.layers * rank * sum(ends.get(name, 0) for name in names)


def saved_by_layer(shape: Shape, compute: int) -> int:
    """Bytes per token that one layer keeps for its backward pass.

    A norm keeps its input in float32, the normalised values, and its output, which the next products read; attention its
    queries, keys, values and output, and a logarithm per head; the feed-forward part four vectors.
    """
    heads = shape.heads + shape.kv_heads
    norms = 2 * ((FLOAT + 2 * compute) * shape.width + FLOAT)
    head_norms = heads * ((FLOAT + compute) * shape.head_size + FLOAT) if shape.head_norms else 0
    attention = 2 * compute * heads * shape.head_size + FLOAT * shape.heads
    return norms + head_norms + attention + 4 * compute * shape.feed_forward


# ---- what is held through all phases


def _trained(shape: Shape, load: Load) -> int:
    return load.adapters or shape.parameters


def _policy(shape: Shape, load: Load) -> dict[str, int]:
    trained = FLOAT * _trained(shape, load) // load.processes
    frozen = load.compute * shape.parameters // load.processes if load.adapters else 0
    return {"frozen weights": frozen, "weights": trained, "Adam": 2 * trained}


def _reference(shape: Shape, load: Load) -> dict[str, int]:
    return {"reference": load.compute * shape.parameters // load.processes} if load.reference else {}


def _disk(shape: Shape, load: Load) -> int:
    """In the main process: the whole model while it is read, Adam's moments while they are written."""
    read = load.compute if load.adapters else FLOAT
    return max(read * shape.parameters, 2 * FLOAT * _trained(shape, load))


# ---- what comes and goes


def _in_pieces(load: Load) -> bool:
    return load.processes > 1 or load.compute != FLOAT or load.offload != "none"


def _whole(shape: Shape, load: Load, models: int = 1) -> Parts:
    return {"whole model": models * load.compute * shape.parameters if _in_pieces(load) else 0}


def _sampling(shape: Shape, load: Load, rows: int, prompt: int, response: int) -> Parts:
    by_layer = rows * (prompt + response) * 2 * shape.kv_heads * shape.head_size * load.compute
    read = max(prompt, min(READ_TOKENS, rows * prompt))
    return {
        **_whole(shape, load),
        "keys and values": (shape.layers + 1) * by_layer,  # those of one layer are there twice when they grow
        "activations": read * _passing(shape, load),
        "logits": rows * shape.vocabulary * (DRAWING + _narrow(load)),
    }


def _scoring(shape: Shape, load: Load) -> Parts:
    """The policy stays whole while the reference is; each is scored in turn."""
    tokens = max(load.micro_batch, load.scored)
    return {
        **_whole(shape, load, models=2 if load.reference else 1),
        "activations": tokens * _passing(shape, load),
        "logits": min(load.logits_chunk, tokens) * shape.vocabulary * (SCORING + _narrow(load)),
    }


def _learning(shape: Shape, load: Load, longest: int) -> Parts:
    tokens, layer = max(load.micro_batch, longest), saved_by_layer(shape, load.compute)
    kept = shape.layers * load.compute * shape.width + layer if load.recompute else shape.layers * layer
    head = (FLOAT + 3 * load.compute) * shape.width  # the last norm, and its output before the response tokens
    return {
        **_passing_weights(shape, load),
        "activations": tokens * (kept + head + _passing(shape, load)),
        "logits": min(load.logits_chunk, tokens) * shape.vocabulary * (LEARNING + _narrow(load)),
    }


def _passing_weights(shape: Shape, load: Load) -> Parts:
    """Weights and gradients beside the held ones while learning.

    In pieces: what is outside the layers, with a gradient that another chunk is added to; two layers, the gradient of one,
    and its sum in float32. In one: the gradient of the output head, whose chunks add up before it joins the others.
    """
    outer, layer = shape.outer_parameters, shape.layer_parameters
    if not _in_pieces(load):
        return {"head's gradient": 0 if load.adapters else FLOAT * shape.vocabulary * shape.width}
    gradients = 0 if load.adapters else load.compute * (2 * outer + layer) + FLOAT * layer
    return {"gathered": load.compute * (outer + 2 * layer) + gradients}


def _passing(shape: Shape, load: Load) -> int:
    """Bytes per token at the widest place of a layer: three vectors of the feed-forward part, and two that go by it."""
    return load.compute * (3 * shape.feed_forward + 2 * shape.width)


def _narrow(load: Load) -> int:
    """The logits before they become float32."""
    return load.compute % FLOAT


def _present(parts: Parts) -> Parts:
    return {name: size for name, size in parts.items() if size}
