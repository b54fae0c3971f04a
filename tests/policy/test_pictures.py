"""Pictures in prompts: that a model which sees is sampled and scored as Hugging Face itself runs it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoModelForImageTextToText, PreTrainedTokenizerFast

from seed_opd.environments import make
from seed_opd.environments.messages import interleave
from seed_opd.errors import UserError
from seed_opd.hindsight.views import ConversationView, DocumentView
from seed_opd.policy.context import Style, TranscriptContext, make_context
from seed_opd.policy.engine import Sampling
from seed_opd.policy.language_model import response_logprobs
from seed_opd.policy.loading import Placement, load_policy, load_reference, load_tokenizer
from seed_opd.policy.pictures import decode, encode, mark_of
from seed_opd.policy.rollout import Assignment, Player
from seed_opd.policy.samples import Sample
from seed_opd.policy.torch_engine import TorchEngine
from seed_opd.processes import join
from seed_opd.trajectory import IMAGE, Trajectory
from seeing import OWN, SIDE, write_model

pytest.importorskip("PIL")


@pytest.fixture(scope="module", params=OWN)
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerFast
) -> Path:
    return write_model(tmp_path_factory.mktemp("seeing"), tokenizer, request.param)


@pytest.fixture(scope="module")
def engine(folder: Path) -> TorchEngine:
    return engine_of(folder)


def engine_of(folder: Path) -> TorchEngine:
    return TorchEngine(
        load_policy(folder, Placement()), load_tokenizer(folder), reference=load_reference(folder, Placement())
    )


def played(engine: TorchEngine, style: Style = "transcript", room: int = 4096, skill: str | None = None, steps: int = 4):
    """Two episodes of one task and one of another, and the context that they were played in."""
    view = partial(make, "sokoban", view="image")
    context = make_context(style, engine.tokenizer, view(), window=2, max_prompt_tokens=room, eye=engine.eye)
    player = Player(engine, context, view, max_steps=steps, max_response_tokens=6, invalid_penalty=0.1, concurrency=8)
    first, second = view().tasks("train")[:2]
    return context, player.play([Assignment(task, f"s{n}", skill) for n, task in enumerate((first, first, second))], 1.0)


def sampled(trajectory: Trajectory) -> torch.Tensor:
    return torch.tensor([value for step in trajectory.steps for value in step.log_probs])


@pytest.mark.parametrize("style", ["transcript", "windowed"])
@pytest.mark.parametrize("skill", [None, "push the box up", f"look at {IMAGE} twice"])
def test_what_was_sampled_is_scored_the_same(engine: TorchEngine, style: Style, skill: str | None) -> None:
    context, trajectories = played(engine, style, skill=skill)
    for trajectory in trajectories:
        samples = context.samples(trajectory, skill)
        assert sum(1 for sample in samples for token in sample.token_ids if token < 0) >= 4 * len(trajectory.steps)
        torch.testing.assert_close(torch.cat(engine.logprobs(samples)), sampled(trajectory), atol=1e-4, rtol=0)


def test_a_conversation_that_drops_its_oldest_pictures_is_scored_the_same(engine: TorchEngine) -> None:
    """Image tokens of different pictures are equal to the model; a cache that took them for the same would fail here."""
    whole, _ = played(engine, steps=1)
    opening = len(whole.samples(played(engine, steps=1)[1][0])[0].token_ids)
    context, trajectories = played(engine, room=opening + 90, steps=8)
    assert any(context.dropped_steps(trajectory) for trajectory in trajectories)
    for trajectory in trajectories:
        scores = torch.cat(engine.logprobs(context.samples(trajectory)))
        torch.testing.assert_close(scores, sampled(trajectory), atol=1e-4, rtol=0)


def test_scores_are_those_of_the_model_as_hugging_face_runs_it(engine: TorchEngine, folder: Path) -> None:
    context, trajectories = played(engine)
    model, processor = AutoModelForImageTextToText.from_pretrained(folder), AutoImageProcessor.from_pretrained(folder)
    image_id = model.config.image_token_id
    for trajectory in trajectories:
        (sample,) = context.samples(trajectory)
        drawn = {image_id: model.config.vision_start_token_id}  # an image token that was drawn has no picture
        ids = torch.tensor([[image_id if token < 0 else drawn.get(token, token) for token in sample.token_ids]])
        pixels = processor(images=[decode(step.image) for step in trajectory.steps], return_tensors="pt")
        with torch.no_grad():
            logits = model(input_ids=ids, mm_token_type_ids=(ids == image_id).int(), **pixels).logits[0]
        taken = torch.log_softmax(logits, -1)[[p - 1 for p in sample.positions], sample.response_ids]
        torch.testing.assert_close(engine.logprobs([sample])[0], taken, atol=1e-4, rtol=0)


def test_what_is_seen_changes_what_is_said(engine: TorchEngine) -> None:
    context, (trajectory, *_) = played(engine)
    other = encode(np.zeros((96, 96, 3), np.uint8))
    blind = replace(trajectory, steps=tuple(replace(step, image=other) for step in trajectory.steps))
    seen, unseen = (torch.cat(engine.logprobs(context.samples(one))) for one in (trajectory, blind))
    assert (seen - unseen).abs().max() > 1e-3


def test_the_same_picture_is_the_same_tokens_and_another_is_not(engine: TorchEngine) -> None:
    black, white = (encode(np.full((96, 96, 3), shade, np.uint8)) for shade in (0, 255))
    assert engine.eye is not None
    assert engine.eye.ids(black) == engine.eye.ids(black) != engine.eye.ids(white)
    assert mark_of(black) < 0
    assert len(engine.eye.ids(black)) == 2 + SIDE[1] ** 2 // 4


def test_it_learns_from_what_it_sees_and_is_loaded_again_as_it_was_saved(folder: Path, tmp_path: Path) -> None:
    engine = engine_of(folder)
    context, trajectories = played(engine)
    samples = [sample for trajectory in trajectories for sample in context.samples(trajectory)]
    before = engine.logprobs(samples)
    signals = [{"weight": torch.ones(sample.response_tokens)} for sample in samples]
    engine.train(samples, signals, lambda log_probs, signal: {"likelihood": -(log_probs * signal["weight"]).sum()})
    tower = next(p for name, p in engine.policy.named_parameters() if "visual" in name and p.ndim > 1)
    assert tower.grad is not None and tower.grad.abs().max() > 0
    engine.step(1e-3)
    engine.publish()
    after = engine.logprobs(samples)
    assert torch.cat(after).mean() > torch.cat(before).mean()
    torch.testing.assert_close(engine.logprobs(samples, reference=True), before, atol=1e-4, rtol=0)
    engine.save(tmp_path / "model")
    again = engine_of(tmp_path / "model")
    samples = [sample for trajectory in trajectories for sample in make_again(again).samples(trajectory)]
    torch.testing.assert_close(again.logprobs(samples), after, atol=1e-4, rtol=0)


def make_again(engine: TorchEngine) -> TranscriptContext:
    environment = make("sokoban", view="image")
    context = make_context("transcript", engine.tokenizer, environment, window=2, max_prompt_tokens=4096, eye=engine.eye)
    assert isinstance(context, TranscriptContext)
    return context


@pytest.mark.parametrize("view", ["document", "conversation"])
def test_the_analyzer_sees_one_picture_per_step(engine: TorchEngine, view: str) -> None:
    context, (trajectory, *_) = played(engine)
    assert isinstance(context, TranscriptContext)
    room = 4096
    shown = DocumentView(context.template.opening, room) if view == "document" else ConversationView(context.closing, room)
    prompt = shown.prompt(trajectory)
    marks = [token for token in prompt.ids if token < 0]
    assert list(dict.fromkeys(marks)) == list(dict.fromkeys(mark_of(step.image or "") for step in trajectory.steps))
    (answer,) = engine.sample([prompt.ids], Sampling(0.0, 4), ["a"])
    assert len(answer.ids) <= 4


def test_an_analyzer_without_room_leaves_the_oldest_middle_pictures_out(engine: TorchEngine) -> None:
    context, (trajectory, *_) = played(engine)
    whole = DocumentView(context.template.opening, 4096).prompt(trajectory)
    short = DocumentView(context.template.opening, len(whole.ids) - 1).prompt(trajectory)
    kept = [token for token in short.ids if token < 0]
    assert short.dropped_steps == 1 and mark_of(trajectory.steps[-1].image or "") == kept[-1]
    assert mark_of(trajectory.steps[0].image or "") == kept[0] and len(kept) < len([t for t in whole.ids if t < 0])


def test_a_picture_for_a_model_without_eyes_is_an_error_with_a_fix(tokenizer: PreTrainedTokenizerFast) -> None:
    context = make_context("transcript", tokenizer, make("sokoban", view="image"), window=2, max_prompt_tokens=999)
    with pytest.raises(UserError, match="cannot see; choose a vision-language model"):
        context.template.opening(f"look: {IMAGE}", ["abc"])


def test_places_and_pictures_must_match() -> None:
    assert interleave(f"a{IMAGE}b", ["x"]) == [("a", "x"), ("b", None)]
    assert interleave(f"a{IMAGE}b", []) == [(f"a{IMAGE}b", None)]
    with pytest.raises(UserError, match="2 places for pictures and 1 pictures"):
        interleave(f"{IMAGE}{IMAGE}", ["x"])


def test_a_forgotten_picture_is_an_error(engine: TorchEngine) -> None:
    assert engine.eye is not None
    with pytest.raises(UserError, match="number -5 has been forgotten"):
        engine.eye.inputs(torch.tensor([[1, -5, -5, 2]]))


@pytest.mark.parametrize("texts", [0, 1])
def test_it_learns_the_same_in_pieces(folder: Path, texts: int) -> None:
    """One sample per micro-batch, five with pictures for two processes: beside the last one is a filler, or a text."""
    join("cpu")
    place = Placement(sharded=True)
    engine = TorchEngine(load_policy(folder, place), load_tokenizer(folder), micro_batch_tokens=1)
    context, trajectories = played(engine_of(folder), steps=2)
    seen = [sample for trajectory in trajectories for sample in context.samples(trajectory)]
    samples = [*seen, *seen[:2], *[Sample((5, 6, 7, 8), ((2, 4),))] * texts]
    weights = [{"weight": torch.linspace(0.5, 1, sample.response_tokens)} for sample in samples]
    engine.train(samples, weights, lambda log_probs, signal: {"likelihood": -(log_probs * signal["weight"]).sum()})
    plain = load_policy(folder, Placement())
    flat, _ = response_logprobs(plain, samples)
    (-(flat * torch.cat([one["weight"] for one in weights])).sum()).backward()
    norm = torch.cat([p.grad.flatten() for p in plain.model.parameters() if p.grad is not None]).norm()
    assert engine.step(1e-3)["grad_norm/total"] == pytest.approx(float(norm), rel=1e-4)
