"""What both ways to vLLM must do, beside the conformance suite."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from conformance import PROMPTS, learn

from seed_opd.hindsight.constrained import SchemaDecoder
from seed_opd.hindsight.schema import Limits, parse
from seed_opd.policy.adapters import Adapters
from seed_opd.policy.engine import Engine, Sampler, Sampling
from seed_opd.policy.loading import Placement, load_policy, load_reference, load_tokenizer
from seed_opd.policy.samples import Sample
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.processes import join
from seed_opd.training.scoring import Scored

WHOLE = Placement()


def trainer(folder: Path, sampler: Sampler, place: Placement = WHOLE, adapters: Adapters | None = None) -> TorchEngine:
    """A torch engine on the folder; it gives the sampler its weights at once."""
    if place.sharded:
        join("cpu")
    policy = load_policy(folder, place, adapters)
    reference = None if adapters else load_reference(folder, place)
    return TorchEngine(policy, load_tokenizer(folder), reference=reference, sampler=sampler)


def scored(engine: Engine, count: int = 4, tokens: int = 12) -> list[Scored]:
    """What a rollout would leave behind: responses with the sampler's log-probs."""
    draw = random.Random(0)
    prompts = [[draw.randrange(200) for _ in range(draw.randrange(1, 60))] for _ in range(count)]
    sampled = engine.sample(prompts, Sampling(1.0, tokens), [f"scored/{number}" for number in range(count)])
    return [
        Scored(
            number,
            Sample((*prompt, *one.ids), ((len(prompt), len(prompt) + len(one.ids)),)),
            torch.tensor(one.log_probs),
            torch.zeros(len(one.ids)),
        )
        for number, (prompt, one) in enumerate(zip(prompts, sampled, strict=True))
    ]


def check_temperatures(engine: TorchEngine) -> None:
    """Against whole logits, divided by the temperature; temperature 0 takes the largest."""
    model = engine.policy.model
    for temperature in (0.0, 0.4, 1.0):
        sampled = engine.sample(PROMPTS, Sampling(temperature, 12), list("abcd"))
        for prompt, one in zip(PROMPTS, sampled, strict=True):
            with torch.no_grad():
                logits = model(torch.tensor([[*prompt, *one.ids]])).logits[0, len(prompt) - 1 : -1]  # (tokens, vocabulary)
            scores = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
            taken = scores.gather(1, torch.tensor(one.ids)[:, None])[:, 0]
            torch.testing.assert_close(taken, torch.tensor(one.log_probs), atol=1e-4, rtol=0)
            assert temperature > 0 or list(one.ids) == logits.argmax(dim=-1).tolist()


def check_grammar(engine: TorchEngine) -> None:
    """A random policy's answers are whole and parse, unless they were cut; those do not parse."""
    limits, budget = Limits(4000, 4000), 400
    decoder = SchemaDecoder(engine.tokenizer, engine.vocab_size, limits)
    whole = 0
    for temperature in (0.0, 1.0, 2.0):  # the hotter, the sooner a random policy closes its texts
        constraint, seeds = decoder.session(24, budget), [f"answer/{number}" for number in range(24)]
        answers = engine.sample([PROMPTS[2]] * 24, Sampling(temperature, budget), seeds, constraint=constraint)
        texts = [engine.tokenizer.decode(list(one.ids), skip_special_tokens=True) for one in answers]
        assert [parse(text, limits, "policy").usable for text in texts] == [one.finished for one in answers]
        assert all(len(one.ids) == budget for one in answers if not one.finished)
        whole += sum(one.finished for one in answers)
    assert 12 < whole < 72


def check_prefix_cache(engine: TorchEngine) -> None:
    """The same long prompt before and after a publish, and its continuation."""
    prompt = list(range(20, 180))
    engine.sample([prompt], Sampling(1.0, 8), ["before"])
    learn(engine, 2)
    for seed in ("after", "and again"):
        [one] = engine.sample([prompt], Sampling(1.0, 8), [seed])
        sample = Sample((*prompt, *one.ids), ((len(prompt), len(prompt) + len(one.ids)),))
        torch.testing.assert_close(engine.logprobs([sample])[0], torch.tensor(one.log_probs), atol=1e-4, rtol=0)
        prompt = [*prompt, *one.ids, 5, 6, 7]
