"""What every engine must do, whoever holds its weights: `Conformance` is a base class of tests.

A subclass says how to make an engine on a Hugging Face folder, and what its arithmetic allows. Everything is compared with
the plainest computation there is: one sequence at a time, whole logits, torch's autograd and AdamW.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from seed_opd.methods import loss_of, resolve
from seed_opd.policy.engine import Engine, Sampling, Signals, components
from seed_opd.policy.samples import Sample
from seed_opd.processes import count, from_main, join

PROMPTS = [[5, 6, 7, 8], [9, 10, 11], [40, 41, 42, 43, 44, 45, 46], [12]]
SAMPLES = [
    Sample((5, 6, 7, 8, 20, 21, 22, 9, 10, 23, 24), ((4, 7), (9, 11)), (0, 1)),
    Sample((9, 10, 11, 30, 31), ((3, 5),)),
    Sample(tuple(range(40, 60)), ((10, 20),)),
]
LEARNING_RATE = 1e-2


class Conformance:
    """Tests of one engine. `tolerance` is for log-probs and losses in nats, `weight_tolerance` for weights after a step."""

    tolerance = 1e-4
    weight_tolerance = 1e-5
    trains_all_weights = True
    """False where only adapters are trained: their gradient is not the weights' own."""

    def make(self, folder: Path) -> Engine:
        """An engine on the model in this folder, with its start as the reference."""
        raise NotImplementedError

    @pytest.fixture()
    def tmp_path(self, tmp_path: Path) -> Path:
        """One folder for all processes, where there are several."""
        if count() > 1:
            join("cpu")
        return from_main(lambda: tmp_path)

    @pytest.fixture()
    def folder(self, model: PreTrainedModel, tokenizer: Any, tmp_path: Path) -> Path:
        path = tmp_path / "start"
        from_main(lambda: [part.save_pretrained(path) for part in (model, tokenizer)])
        return path

    @pytest.fixture()
    def engine(self, folder: Path) -> Engine:
        return self.make(folder)

    def test_log_probs_are_those_of_the_whole_model(self, engine, folder):
        for scores, sample in zip(engine.logprobs(SAMPLES), SAMPLES, strict=True):
            assert scores.dtype == torch.float32
            torch.testing.assert_close(scores, plain_logprobs(load(folder), sample), atol=self.tolerance, rtol=0)

    def test_sampled_log_probs_are_those_that_are_scored(self, engine):
        self.check_sampled(engine)

    def test_a_response_ends_with_its_end_token_or_at_its_length(self, engine):
        for one in engine.sample(PROMPTS, Sampling(1.0, 12), list("abcd")):
            assert len(one.ids) == len(one.log_probs) <= 12
            assert one.finished == (one.ids[-1] == engine.tokenizer.eos_token_id)
            assert engine.tokenizer.eos_token_id not in one.ids[:-1]

    def test_what_is_drawn_depends_on_the_seed_and_not_on_the_batch(self, engine):
        together = engine.sample(PROMPTS, Sampling(1.0, 8), list("abcd"))
        again = engine.sample([PROMPTS[2]], Sampling(1.0, 8), ["c"])
        other = engine.sample([PROMPTS[2]], Sampling(1.0, 8), ["another"])
        assert together[2].ids == again[0].ids != other[0].ids

    def test_one_step_of_a_known_loss(self, engine, folder, tmp_path):
        signals, loss = signals_of(engine), loss_of(resolve("seed"))
        expected = load(folder)
        flat = torch.cat([plain_logprobs(expected, sample) for sample in SAMPLES])  # (tokens,)
        parts, watched = components(loss(flat, joined(signals)))
        metrics = engine.train(SAMPLES, signals, loss)
        for name, part in parts.items():
            (gradient,) = torch.autograd.grad(part, flat, retain_graph=True)
            assert metrics[f"loss/{name}"] == pytest.approx(part.item(), abs=self.tolerance), name
            assert metrics[f"signal/{name}"] == pytest.approx(float(gradient.norm()), abs=self.tolerance), name
        assert {name: metrics[name] for name in watched} == pytest.approx({name: float(watched[name]) for name in watched})
        sum(parts.values()).backward()
        norm = torch.nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
        step = engine.step(LEARNING_RATE)
        engine.publish()
        if self.trains_all_weights:
            assert step["grad_norm/total"] == pytest.approx(float(norm), rel=1e-3)
            torch.optim.AdamW(expected.parameters(), lr=LEARNING_RATE, weight_decay=0.01).step()
            engine.save(tmp_path / "model")
            for (name, one), two in zip(load(tmp_path / "model").named_parameters(), expected.parameters(), strict=True):
                clear = two.grad.abs() > 1e-5  # AdamW's first step is the sign of a gradient, which rounding decides below
                assert clear.any()
                torch.testing.assert_close(one[clear], two[clear], atol=self.weight_tolerance, rtol=0, msg=name)

    def test_after_a_publish_the_sampler_holds_the_trained_weights(self, engine):
        before = torch.cat(engine.logprobs(SAMPLES))
        learn(engine, 2)
        assert (torch.cat(engine.logprobs(SAMPLES)) - before).abs().max() > 0.05
        self.check_sampled(engine)

    def test_the_reference_stays_where_the_run_began(self, engine):
        before = torch.cat(engine.logprobs(SAMPLES, reference=True))
        learn(engine, 2)
        torch.testing.assert_close(torch.cat(engine.logprobs(SAMPLES, reference=True)), before, atol=self.tolerance, rtol=0)

    def test_going_on_from_a_checkpoint_is_as_if_nothing_had_been(self, engine, folder, tmp_path):
        learn(engine, 2)
        engine.save(tmp_path / "model")
        engine.save_state(tmp_path / "state")
        learn(engine, 2)
        other = self.make(folder)
        other.load_state(tmp_path / "model", tmp_path / "state")
        learn(other, 2)
        for one, two in zip(engine.logprobs(SAMPLES), other.logprobs(SAMPLES), strict=True):
            torch.testing.assert_close(one, two, atol=self.tolerance, rtol=0)

    def test_a_saved_model_is_a_folder_that_transformers_loads(self, engine, tmp_path):
        learn(engine, 2)
        engine.save(tmp_path / "model")
        for scores, sample in zip(engine.logprobs(SAMPLES), SAMPLES, strict=True):
            expected = plain_logprobs(load(tmp_path / "model"), sample)
            torch.testing.assert_close(scores, expected, atol=self.tolerance, rtol=0)

    def check_sampled(self, engine: Engine) -> None:
        sampled = engine.sample(PROMPTS, Sampling(1.0, 8), list("abcd"))
        samples = [
            Sample((*prompt, *one.ids), ((len(prompt), len(prompt) + len(one.ids)),))
            for prompt, one in zip(PROMPTS, sampled, strict=True)
        ]
        for scores, one in zip(engine.logprobs(samples), sampled, strict=True):
            torch.testing.assert_close(scores, torch.tensor(one.log_probs), atol=self.tolerance, rtol=0)


def load(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def plain_logprobs(model: PreTrainedModel, sample: Sample) -> Tensor:
    """(response_tokens,), from the logits of one whole sequence."""
    log_probs = torch.log_softmax(model(torch.tensor([sample.token_ids])).logits[0], dim=-1)  # (tokens, vocabulary)
    return torch.stack([log_probs[position - 1, sample.token_ids[position]] for position in sample.positions])


def signals_of(engine: Engine) -> list[Signals]:
    """Signals of a SEED update in which every component pushes: old, reference and skill log-probs all differ."""
    total = sum(sample.response_tokens for sample in SAMPLES)
    signals: list[Signals] = []
    for number, scores in enumerate(engine.logprobs(SAMPLES)):
        weight = torch.full_like(scores, 1.0 / total)
        signals.append(
            {
                "old": scores + 0.05,
                "advantage": torch.full_like(scores, 1.0 - number),
                "surrogate_weight": weight,
                "reference": scores - 0.3,
                "kl_weight": 0.01 * weight,
                "skill": scores + 0.2 * (-1.0) ** number,
                "distillation_weight": 0.01 * weight,
            }
        )
    return signals


def learn(engine: Engine, steps: int) -> None:
    """Make the first sample likely."""
    for _ in range(steps):
        tokens = SAMPLES[0].response_tokens
        engine.train(SAMPLES[:1], [{"weight": torch.full((tokens,), 1.0 / tokens)}], _likelihood)
        engine.step(LEARNING_RATE)
    engine.publish()


def joined(signals: list[Signals]) -> dict[str, Tensor]:
    return {name: torch.cat([signal[name] for signal in signals]) for name in signals[0]}


def _likelihood(log_probs: Tensor, signals: Signals) -> dict[str, Tensor]:
    return {"likelihood": -(log_probs * signals["weight"]).sum()}
