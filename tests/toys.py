"""An environment, an engine and trajectories that are easy to recognise and cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

from seed_opd.environments.base import Action, Environment
from seed_opd.policy.samples import Sample
from seed_opd.trajectory import Step, Task, Trajectory

TAG = "<action>"


class Plain(Environment):
    """Prompts that are easy to recognise; it is never played."""

    name, categories, max_steps = "plain", ("all",), 10

    def tasks(self, split):
        return []

    def category(self, task):
        return "all"

    def reset(self, task):
        raise NotImplementedError

    def step(self, action):
        raise NotImplementedError

    def parse(self, response):
        return Action(response, True)

    def action_span(self, response):
        start = response.find(TAG)
        return (start + len(TAG), response.find("</action>")) if start >= 0 else (0, 0)

    def windowed_prompt(self, situation, skill, window):
        history = situation.history
        past = "".join(f"[{step.observation}>{step.action}]" for step in history[len(history) - window :])
        return f"G:{situation.goal} K:{skill or ''} {past} O:{situation.observation}"

    def opening(self, goal, observation, skill):
        return f"G:{goal} K:{skill or ''} O:{observation}"


class Scorer:
    """An engine that only scores: a token's log-prob is a fixed function of the token and of what stands before it."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def logprobs(self, samples: Sequence[Sample], reference: bool = False) -> list[Tensor]:
        return [torch.tensor([_score(sample.token_ids[: p + 1], reference) for p in sample.positions]) for sample in samples]


def episode(
    tokenizer: PreTrainedTokenizerBase,
    responses: Sequence[str],
    *,
    index: int = 0,
    reward: float = 1.0,
    invalid: Sequence[int] = (),
    penalty: float = 0.1,
) -> Trajectory:
    """A trajectory of these responses, as `Scorer` would have sampled them; the reward comes at its end."""
    steps = []
    for number, response in enumerate(responses):
        ids = (*tokenizer.encode(response, add_special_tokens=False), tokenizer.eos_token_id)
        earned = reward if number == len(responses) - 1 else 0.0
        log_probs = (-0.5 - 0.01 * number,) * len(ids)
        steps.append(Step(f"obs{number}", response, response, number not in invalid, earned, None, ids, log_probs))
    cost = penalty * len(invalid)
    return Trajectory(Task("plain", "train", index), "goal", "all", tuple(steps), reward > 0, reward, "end", cost)


def _score(ids: Sequence[int], reference: bool) -> float:
    return -((hash(tuple(ids)) + 7 * reference) % 1000 + 1) / 500


def random_model(vocabulary: int, seed: int = 0) -> Qwen3ForCausalLM:
    """A Qwen3 of some 20,000 parameters with random weights, large enough that its choices differ."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    return Qwen3ForCausalLM(config).eval()
