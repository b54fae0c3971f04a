from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from seed_opd.hindsight.constrained import SchemaConstraint, SchemaDecoder
from seed_opd.hindsight.policy_analyzer import PolicyAnalyzer
from seed_opd.hindsight.prompts import analyzer_prompt, question
from seed_opd.hindsight.schema import Limits, render
from seed_opd.hindsight.views import ConversationView, DocumentView
from seed_opd.policy.engine import Sampling
from seed_opd.policy.language_model import LanguageModel
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.trajectory import Skill, Trajectory

from .episodes import CLEAN, LOST, episode
from .test_constrained import make_tokenizer

SHORT = episode("put a mug in desk.", "pick", [("look", "You see.")])


@dataclass
class Answer:
    ids: Sequence[int]


class ScriptedEngine:
    """Answers what is scripted for the goal in the prompt; keeps the size of each batch."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, answers: dict[str, str]) -> None:
        self.tokenizer = tokenizer
        self.answers = answers
        self.batches: list[int] = []
        self.keys: list[Sequence[Hashable] | None] = []

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Any,
        seeds: Sequence[str],
        *,
        keys: Sequence[Hashable] | None = None,
        constraint: SchemaConstraint | None = None,
    ) -> list[Answer]:
        assert constraint is None and len(seeds) == len(prompts)
        self.batches.append(len(prompts))
        self.keys.append(keys)
        return [Answer([*self.tokenizer.encode(self._answer(ids)), self.tokenizer.eos_token_id]) for ids in prompts]

    def _answer(self, ids: Sequence[int]) -> str:
        text = self.tokenizer.decode(list(ids))
        return next(answer for goal, answer in self.answers.items() if goal in text)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer()


def test_answers_keep_the_order_of_the_episodes(tokenizer: PreTrainedTokenizerFast) -> None:
    answers = {
        CLEAN.goal: "Sure! " + render(Skill("it went well.", "take mug 1.")),
        LOST.goal: "I do not know.",
        SHORT.goal: render(Skill("", "look")),
    }
    engine = ScriptedEngine(tokenizer, answers)
    analyzer = PolicyAnalyzer(engine, DocumentView(tokenizer.encode, 9999), Sampling(0.0, 99), batch_size=2)
    skills = analyzer.analyze([CLEAN, LOST, SHORT, CLEAN])
    assert [skill.status for skill in skills] == ["ok", "unparsed", "ok", "ok"]
    assert [skill.skill for skill in skills] == ["take mug 1.", "", "look", "take mug 1."]
    assert {skill.analyzer for skill in skills} == {"policy"} and skills[1].raw == "I do not know."
    assert engine.batches == [2, 2]


def test_length_is_counted_and_never_crashes(tokenizer: PreTrainedTokenizerFast) -> None:
    engine = ScriptedEngine(tokenizer, {SHORT.goal: render(Skill("", "look")), CLEAN.goal: render(Skill("", "take"))})
    whole = len(tokenizer.encode(analyzer_prompt(CLEAN).text))
    analyzer = PolicyAnalyzer(engine, DocumentView(tokenizer.encode, whole - 1), Sampling(0.0, 99))
    assert [skill.status for skill in analyzer.analyze([CLEAN, SHORT])] == ["ok", "ok"]
    assert analyzer.dropped_steps == 1
    short = len(tokenizer.encode(analyzer_prompt(SHORT).text))
    tight = PolicyAnalyzer(engine, DocumentView(tokenizer.encode, short), Sampling(0.0, 99))
    skills = tight.analyze([CLEAN, SHORT])
    assert [skill.status for skill in skills] == ["error", "ok"] and "tokens, more than" in skills[0].raw


def test_nothing_to_analyze(tokenizer: PreTrainedTokenizerFast) -> None:
    view = DocumentView(tokenizer.encode, 99)
    assert PolicyAnalyzer(ScriptedEngine(tokenizer, {}), view, Sampling(0.0, 99)).analyze([]) == []


def test_an_untrained_model_always_parses_under_the_schema(tokenizer: PreTrainedTokenizerFast) -> None:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 5,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
    )
    engine = TorchEngine(LanguageModel(Qwen3ForCausalLM(config)), tokenizer)
    decoder = SchemaDecoder(tokenizer, config.vocab_size, Limits(summary=60, skill=60))
    budget = decoder.overhead + 20
    analyzer = PolicyAnalyzer(
        engine, DocumentView(tokenizer.encode, 4000), Sampling(0.0, budget), decoder=decoder, batch_size=2
    )
    trajectories: list[Trajectory] = [CLEAN, LOST, SHORT]
    skills = analyzer.analyze(trajectories)
    assert [skill.status for skill in skills] == ["ok"] * 3
    assert all(0 < len(skill.skill) <= 60 for skill in skills) and analyzer.cuts > 0
    assert analyzer.analyze(trajectories) == skills


def test_a_conversation_is_continued_under_its_key_newest_batch_first(tokenizer: PreTrainedTokenizerFast) -> None:
    answer = render(Skill("it went.", "look"))
    engine = ScriptedEngine(tokenizer, {"asked": answer})
    played = [replace(SHORT, seed=f"episode {number}") for number in range(5)]
    asked: list[str] = []

    def closing(trajectory: Trajectory, message: str, max_tokens: int) -> tuple[list[int], int]:
        asked.append(message)
        return tokenizer.encode("asked" if trajectory.seed != "episode 1" else "asked " * max_tokens), 2

    analyzer = PolicyAnalyzer(engine, ConversationView(closing, 40), Sampling(0.0, 99), batch_size=2)
    skills = analyzer.analyze(played)
    assert [skill.status for skill in skills] == ["ok", "error", "ok", "ok", "ok"] and analyzer.dropped_steps == 10
    assert engine.keys == [["episode 3", "episode 4"], ["episode 0", "episode 2"]]
    assert asked == [question(SHORT)] * 5
