"""The Tinker engine against a server in this process, beside the torch engine on the same weights."""

from __future__ import annotations

import copy
import json
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

tinker = pytest.importorskip("tinker", reason="needs the extra tinker")

from conformance import Conformance  # noqa: E402
from fake_tinker import FakeService  # noqa: E402

from seed_opd.errors import RunStopped, UserError  # noqa: E402
from seed_opd.methods import loss_of, resolve  # noqa: E402
from seed_opd.policy.adapters import Adapters  # noqa: E402
from seed_opd.policy.engine import Engine, Sampling  # noqa: E402
from seed_opd.policy.language_model import LanguageModel  # noqa: E402
from seed_opd.policy.loading import load_model, load_tokenizer  # noqa: E402
from seed_opd.policy.samples import Sample  # noqa: E402
from seed_opd.policy.seeds import seed_number  # noqa: E402
from seed_opd.policy.tinker_engine import SEED_BITS, TinkerEngine  # noqa: E402
from seed_opd.policy.tinker_service import TinkerService  # noqa: E402
from seed_opd.policy.torch_engine import TorchEngine  # noqa: E402

SAMPLES = [
    Sample((5, 6, 7, 8, 9, 10), ((2, 4), (5, 6)), (0, 1)),
    Sample((11, 12, 13, 14), ((1, 4),)),
    Sample((20, 21, 22, 23, 24, 25, 26), ((3, 7),)),
]
SETTINGS = {"betas": (0.9, 0.95), "weight_decay": 0.01}


def engine_of(service: FakeService, tokenizer, **settings) -> TinkerEngine:
    timeout = settings.pop("timeout", 20.0)
    connected = TinkerService(tinker, service, timeout=timeout)
    return TinkerEngine(connected, tokenizer, len(tokenizer), base_model="base", rank=4, **(SETTINGS | settings))


@pytest.fixture(params=["sums", "averages"])
def service(request, model, tokenizer) -> FakeService:
    averages = request.param == "averages"
    return FakeService(copy.deepcopy(model), tokenizer.eos_token_id, averages=averages, futures=not averages)


@pytest.fixture()
def engine(service, tokenizer) -> TinkerEngine:
    return engine_of(service, tokenizer)


class TestServerThatSums(Conformance):
    averages = False
    trains_all_weights = False  # it does here, but what it saves is a name

    def make(self, folder: Path) -> Engine:
        self.services = getattr(self, "services", {})
        fresh = FakeService(load_model(folder), load_tokenizer(folder).eos_token_id, averages=self.averages)
        service = self.services.setdefault(folder, fresh)
        return engine_of(service, load_tokenizer(folder), betas=(0.9, 0.999))

    def test_a_saved_model_is_a_folder_that_transformers_loads(self):
        pytest.skip("the server in this process gives no archives; the one in tests/tinker does")


class TestServerThatAverages(TestServerThatSums):
    averages = True


def seed_signals(old):
    """What SEED's loss reads: positive and negative advantages, a skill that helps some tokens, a reference."""
    generator = torch.Generator().manual_seed(3)
    signals = []
    for number, log_probs in enumerate(old):
        draw = [torch.rand(len(log_probs), generator=generator) - 0.5 for _ in range(2)]
        signals.append(
            {
                "old": log_probs,
                "advantage": torch.full_like(log_probs, (1.0, -2.0, 0.5)[number]),
                "surrogate_weight": torch.full_like(log_probs, 1 / 10),
                "reference": log_probs + draw[0],
                "kl_weight": torch.full_like(log_probs, 0.01 / 10),
                "skill": log_probs + draw[1],
                "distillation_weight": torch.full_like(log_probs, 0.5 / 10),
            }
        )
    return signals


def test_updates_are_the_torch_engines(engine, service, model, tokenizer):
    """Two updates of SEED's loss, each of two calls to `train`: losses, signals, gradient norms and weights."""
    torch_engine = TorchEngine(LanguageModel(model), tokenizer, max_grad_norm=1e9, **SETTINGS)
    engine._max_grad_norm = 1e9  # the averaging server does not clip
    loss = loss_of(resolve("seed"))
    for _ in range(2):
        rows = {}
        for name, one in (("torch", torch_engine), ("tinker", engine)):
            signals = seed_signals(one.logprobs(SAMPLES))
            first = one.train(SAMPLES[:2], signals[:2], loss)
            second = one.train(SAMPLES[2:], signals[2:], loss)
            rows[name] = [first, second, one.step(1e-2)]
        for mine, other in zip(rows["tinker"], rows["torch"], strict=True):
            for name in set(other) - {"entropy"}:
                assert mine[name] == pytest.approx(other[name], rel=1e-4, abs=1e-6), name
    trained = service.clients[0].model
    assert engine.client.model is trained
    for (name, mine), other in zip(trained.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(mine, other, atol=2e-5, rtol=0, msg=name)
    used = set(service.clients[0].losses)
    assert used == ({"importance_sampling"} if service.averages else {"cross_entropy"})


def test_the_gradient_is_clipped_or_that_it_is_not_is_shown(engine, service, model, tokenizer):
    signals = [{"old": torch.zeros(sample.response_tokens)} for sample in SAMPLES]
    engine.train(SAMPLES, signals, lambda log_probs, _: {"loss": 100 * log_probs.sum()})
    row = engine.step(1e-2)
    assert row["grad_norm/total"] > 1
    assert row["grad_norm/unclipped"] == float(service.averages)


def test_entropy_is_estimated_by_the_log_probs(engine):
    signals = [{"old": torch.zeros(sample.response_tokens)} for sample in SAMPLES]
    row = engine.train(SAMPLES, signals, lambda log_probs, _: {"loss": log_probs.sum()})
    assert row["entropy"] == pytest.approx(-sum(float(value.sum()) for value in engine.logprobs(SAMPLES)), rel=1e-5)


def test_how_the_server_scales_is_measured_and_noted(engine, service):
    assert engine.describe()["gradients"] == "not measured"
    signals = [{"old": torch.zeros(sample.response_tokens)} for sample in SAMPLES]
    engine.train(SAMPLES, signals, lambda log_probs, _: {"loss": log_probs.sum()})
    assert engine.describe()["gradients"] == ("average" if service.averages else "sum")
    assert len(service.clients) == 2, "the measurement must not touch the weights that are trained"


def test_a_server_that_scales_otherwise_is_refused(service, tokenizer, monkeypatch):
    engine = engine_of(service, tokenizer)
    norms = iter([1.0, 1.5, 1.0])
    monkeypatch.setattr("seed_opd.policy.tinker_gradients.grad_norm", lambda response: next(norms))
    with pytest.raises(RunStopped, match=r"1\.500 times the norm"):
        engine.train(SAMPLES, [{"old": torch.zeros(s.response_tokens)} for s in SAMPLES], lambda lp, _: {"l": lp.sum()})


def test_sampling_depends_on_the_seed_and_not_on_the_batch(engine, model):
    prompts, seeds = [[5, 6, 7], [8, 9], [10]], ["a", "b", "c"]
    forth = engine.sample(prompts, Sampling(1.0, 6), seeds)
    back = engine.sample(prompts[::-1], Sampling(1.0, 6), seeds[::-1])[::-1]
    assert [drawn.ids for drawn in forth] == [drawn.ids for drawn in back]
    assert [drawn.ids for drawn in forth] != [
        drawn.ids for drawn in engine.sample(prompts, Sampling(1.0, 6), ["d", "e", "f"])
    ]
    samples = [Sample((*p, *d.ids), ((len(p), len(p) + len(d.ids)),)) for p, d in zip(prompts, forth, strict=True)]
    for score, drawn in zip(engine.logprobs(samples), forth, strict=True):
        torch.testing.assert_close(score, torch.tensor(drawn.log_probs), atol=1e-5, rtol=0)


def test_seeds_are_numbers_that_every_server_takes():
    numbers = {seed_number(str(number), SEED_BITS) for number in range(1000)}
    assert len(numbers) == 1000 and max(numbers) < 2**31


def checkpoints(service: FakeService) -> list[str]:
    return [path for path in service.paths if "/weights/" in path]


def test_one_checkpoint_on_the_server_holds_model_and_state(engine, service, tmp_path):
    engine.save(tmp_path / "model")
    engine.save_state(tmp_path / "state")
    assert len(checkpoints(service)) == 1
    signals = [{"old": torch.zeros(sample.response_tokens)} for sample in SAMPLES]
    engine.train(SAMPLES, signals, lambda log_probs, _: {"loss": log_probs.sum()})
    engine.step(1e-3)
    engine.save_state(tmp_path / "state")
    assert len(checkpoints(service)) == 2, "and other weights have another one"


def test_a_saved_folder_names_the_weights_and_says_what_is_missing(engine, service, tmp_path):
    for _ in range(2):
        engine.save(tmp_path / "model")
    note = json.loads((tmp_path / "model" / "tinker.json").read_text())
    assert note["path"] in service.paths and note["base_model"] == "base" and note["rank"] == 4
    assert "no archives here" in note["no_adapter"]
    assert (tmp_path / "model" / "tokenizer.json").exists()


def test_a_folder_without_a_server_checkpoint_is_refused(engine, tmp_path):
    with pytest.raises(UserError, match="names no weights on a Tinker server"):
        engine.load_state(tmp_path, tmp_path)
    (tmp_path / "tinker.json").write_text("{}")
    with pytest.raises(UserError, match="is damaged"):
        engine.load_state(tmp_path, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": []},
        {"tokens": [10**6], "logprobs": [-1.0]},
        {"logprobs": None},
        {"logprobs": [float("nan")] * 3},
        {"stop_reason": "stop"},
    ],
)
def test_responses_that_cannot_be_are_refused(engine, change):
    drawn = {"tokens": [5, 6, 7], "logprobs": [-1.0] * 3, "stop_reason": "length"}
    engine._sampler.spoil = lambda _: SimpleNamespace(**(drawn | change))
    with pytest.raises(RunStopped, match="response of no use"):
        engine.sample([[5, 6]], Sampling(1.0, 3), ["s"])


def test_a_server_that_does_not_answer_ends_the_run(service, tokenizer, monkeypatch):
    engine = engine_of(service, tokenizer, timeout=0.2)
    monkeypatch.setattr(engine.client, "forward", lambda *_: threading.Event().wait(30))
    with pytest.raises(RunStopped, match=r"asked for log-probs: no answer within 0\.2 seconds"):
        engine.logprobs(SAMPLES)


def test_an_error_of_the_server_is_one_line_without_the_key(service, tokenizer, monkeypatch):
    engine = engine_of(service, tokenizer)
    engine.service._secret = "tml-secret"

    def fail(*_):
        raise tinker.APIError("denied to\n tml-secret", request=None, body=None)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.client, "forward", fail)
    with pytest.raises(RunStopped, match=r"asked for log-probs: APIError: denied to \[key\]") as caught:
        engine.logprobs(SAMPLES)
    assert "tml-secret" not in str(caught.value)


def test_log_probs_that_are_no_numbers_end_the_run(engine):
    with torch.no_grad():
        engine.client.model.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(RunStopped, match="no numbers"):
        engine.logprobs(SAMPLES)


def test_a_loss_that_is_no_number_is_not_sent(engine, service):
    signals = [{"old": torch.full((sample.response_tokens,), float("inf"))} for sample in SAMPLES]
    with pytest.raises(RunStopped, match="not a finite number"):
        engine.train(SAMPLES, signals, lambda log_probs, signal: {"loss": (log_probs - signal["old"]).sum()})
    assert service.clients[0].losses == []


def test_grammars_are_not_in_the_protocol(engine):
    with pytest.raises(UserError, match=r"analyzer\.constrained=false"):
        engine.sample([[5]], Sampling(), ["s"], constraint=object())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adapters": None}, "model.lora: a Tinker server trains adapters only"),
        ({"adapters": Adapters(4, 16, "all-linear", seed=0)}, "model.lora.alpha: 16 cannot be asked"),
        ({"adapters": Adapters(4, 32, ("q_proj",), seed=0)}, "model.lora.targets: a Tinker server chooses"),
        ({"url": ""}, "engine.url: it is empty"),
        ({"api_key_variable": "SEED_OPD_NO_SUCH_KEY"}, "'SEED_OPD_NO_SUCH_KEY' is empty"),
        ({"model": Path("/nowhere/at/all")}, "model.path: '/nowhere/at/all' cannot be loaded: there is no such folder"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_starts(settings, message, model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    given = {"model": tmp_path, "url": "http://localhost:1", "adapters": Adapters(4, 32, "all-linear", seed=0)} | settings
    with pytest.raises(UserError, match=re.escape(message)):
        TinkerEngine.connect(given.pop("model"), **given)


def test_more_than_one_process_is_refused(monkeypatch):
    monkeypatch.setattr("seed_opd.policy.tinker_engine.count", lambda: 2)
    with pytest.raises(UserError, match="trains for one process and not 2"):
        TinkerEngine.connect("base", url="http://localhost:1", adapters=Adapters(4, 32, "all-linear", seed=0))
