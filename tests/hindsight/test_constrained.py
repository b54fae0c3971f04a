import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from seed_opd.errors import UserError
from seed_opd.hindsight.constrained import SchemaConstraint, SchemaDecoder
from seed_opd.hindsight.schema import Limits, parse, render
from seed_opd.trajectory import Skill

from .episodes import CLEAN, LOST

TEXTS = (
    [step.observation for step in CLEAN.steps + LOST.steps] * 3
    + ["größe 猫 🐈 — ça"] * 5
    + [render(Skill("it was.", "go on."))] * 9
)
EXTRA = 7  # logits wider than the tokenizer


def make_tokenizer(byte_level: bool = True, size: int = 700) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE(unk_token=None if byte_level else "?"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if byte_level else pre_tokenizers.Whitespace()
    inner.decoder = decoders.ByteLevel() if byte_level else decoders.Fuse()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    special = ["<pad>", "<end>"] if byte_level else ["<pad>", "<end>", "?"]
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    inner.train_from_iterator(TEXTS if byte_level else ["plain words"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<end>")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer()


@pytest.fixture(scope="module")
def decoder(tokenizer: PreTrainedTokenizerFast) -> SchemaDecoder:
    return SchemaDecoder(tokenizer, len(tokenizer) + EXTRA, Limits(summary=40, skill=40))


def draw(constraint: SchemaConstraint, rows: int, budget: int, bias: torch.Tensor, seed: int) -> list[list[int]]:
    """Greedy answers of a model with random logits; `bias` (vocabulary,) is what it prefers."""
    generator = torch.Generator().manual_seed(seed)
    answers: list[list[int]] = [[] for _ in range(rows)]
    alive = list(range(rows))
    for _ in range(budget):
        mask = constraint.mask(alive)
        assert mask.shape == (len(alive), len(bias)) and mask.any(dim=1).all()
        logits = (torch.randn(len(alive), len(bias), generator=generator) + bias).masked_fill(~mask, -torch.inf)
        tokens = logits.argmax(dim=1).tolist()
        for row, token in zip(list(alive), tokens, strict=True):
            answers[row].append(token)
            if constraint.accept(row, token):
                alive.remove(row)
        if not alive:
            break
    assert not alive, "an answer was not closed within its budget"
    return answers


def biases(decoder: SchemaDecoder) -> dict[str, torch.Tensor]:
    """Models that babble, never close, close at once, spell single bytes, and love characters of many bytes."""
    quotes = torch.tensor([b'"' in token for token in decoder.spelling])
    single = torch.tensor([len(token) == 1 for token in decoder.spelling])
    high = torch.tensor([bool(token) and max(token) >= 0xE0 for token in decoder.spelling])
    return {
        "none": torch.zeros(len(quotes)),
        "open": -99.0 * quotes,
        "close": 99.0 * quotes,
        "bytes": 99.0 * single,
        "wide": 99.0 * high,
    }


@pytest.mark.parametrize("bias", ["none", "open", "close", "bytes", "wide"])
@pytest.mark.parametrize("extra", [2, 3, 9, 200])
def test_random_logits_always_parse(
    tokenizer: PreTrainedTokenizerFast, decoder: SchemaDecoder, bias: str, extra: int
) -> None:
    budget, preference = decoder.overhead + extra, biases(decoder)[bias]
    for seed in range(6):
        for answer in draw(decoder.session(5, budget), 5, budget, preference, seed):
            text = tokenizer.decode(answer)
            skill = parse(text, decoder.limits)
            assert skill.status == "ok", text
            assert list(json.loads(text)) == ["episode_summary", "episode_skill"] and "\ufffd" not in text


@pytest.mark.parametrize("bias", ["open", "wide"])
@pytest.mark.parametrize("extra", [2, 3, 4, 60])
def test_single_bytes_and_long_texts_stay_within_the_budget(bias: str, extra: int) -> None:
    tokenizer = make_tokenizer(size=258)  # nothing but bytes
    decoder = SchemaDecoder(tokenizer, len(tokenizer), Limits(summary=999, skill=999))
    budget = decoder.overhead + extra
    for seed in range(10):
        for answer in draw(decoder.session(5, budget), 5, budget, biases(decoder)[bias], seed):
            assert parse(tokenizer.decode(answer)).usable


def test_a_model_that_knows_its_answer_is_not_disturbed(tokenizer: PreTrainedTokenizerFast, decoder: SchemaDecoder) -> None:
    wanted = tokenizer.encode(render(Skill("it was größe 猫.", "open cabinet 2, then go on.")))
    constraint = decoder.session(1, len(wanted) + decoder.overhead + 40)
    for token in wanted[:-1]:
        assert constraint.mask([0])[0, token]
        assert not constraint.accept(0, token)
    assert constraint.accept(0, wanted[-1]) and constraint.cuts == 0


def test_cuts_are_counted(decoder: SchemaDecoder) -> None:
    constraint = decoder.session(3, decoder.overhead + 8)
    draw(constraint, 3, decoder.overhead + 8, biases(decoder)["open"], 0)
    assert constraint.cuts == 6


def test_special_and_missing_tokens_are_never_allowed(tokenizer: PreTrainedTokenizerFast, decoder: SchemaDecoder) -> None:
    constraint = decoder.session(1, 200)
    for token in tokenizer.encode('{"episode_summary":"a'):
        constraint.accept(0, token)
    mask = constraint.mask([0])[0]
    assert not mask[tokenizer.all_special_ids].any() and not mask[len(tokenizer) :].any()


def test_a_forbidden_token_is_refused(tokenizer: PreTrainedTokenizerFast, decoder: SchemaDecoder) -> None:
    with pytest.raises(ValueError, match="row 1"):
        decoder.session(2, 200).accept(1, tokenizer.encode("mug")[0])


def test_too_small_a_budget_is_refused(decoder: SchemaDecoder) -> None:
    with pytest.raises(UserError, match=r"analyzer\.max_tokens: 5"):
        decoder.session(1, 5)


def test_a_tokenizer_that_cannot_spell_the_frame_is_refused() -> None:
    words = make_tokenizer(byte_level=False)
    with pytest.raises(UserError, match=r"analyzer\.constrained"):
        SchemaDecoder(words, len(words))
