"""The vLLM server's client against a fake server on this machine: requests, answers, garbage, death and delay.

A real server is asked in tests/vllm_cpu.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import torch

import fake_vllm
from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.engine import Sampled, Sampling
from seed_opd.policy.seeds import seed_number
from seed_opd.policy.vllm_answers import SEED_BITS, Bounds
from seed_opd.policy.vllm_server import Client, VllmServerSampler

BOUNDS = Bounds(end_ids=(7,), vocab_size=100, max_model_len=50)
PROMPTS = [[5, 6], [9]]
SAMPLING = Sampling(0.5, 4)
KEY = "a-secret-key"


class Grammar:
    grammar = 'root ::= "a"'


class Fake(ThreadingHTTPServer):
    """Answers a prompt with its first token and the end token 7. `replies` replaces an answer by path: status and body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, Any, str | None]] = []
        self.replies: dict[str, tuple[int, bytes]] = {}
        self.delay = 0.0
        self.drip = 0.0
        self.version = "default"
        self.active = 0
        self.most_active = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def bodies(self, path: str) -> list[Any]:
        return [body for asked, body, _ in self.requests if asked == path]

    def answer(self, path: str, body: Any) -> Any:
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": "model", "max_model_len": 50}]}
        if path == "/inference/v1/generate":
            return generated([body["token_ids"][0], 7], self.version)
        if path == "/weight_info":
            return {"weight_version": self.version}
        if path == "/get_world_size":
            return {"world_size": 2}
        if path == "/reset_prefix_cache":
            return {"success": True}
        if path == "/finish_weight_update":
            self.version = body["weight_version"]
        return {"message": "done"}


class Handler(BaseHTTPRequestHandler):
    server: Fake

    def do_GET(self) -> None:
        self.reply(None)

    def do_POST(self) -> None:
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def reply(self, body: Any) -> None:
        fake = self.server
        with fake.lock:
            fake.requests.append((self.path, body, self.headers.get("Authorization")))
            fake.active += 1
            fake.most_active = max(fake.most_active, fake.active)
        time.sleep(fake.delay)
        status, content = fake.replies.get(self.path) or (200, json.dumps(fake.answer(self.path, body)).encode())
        with fake.lock:
            fake.active -= 1
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            for byte in [content] if not fake.drip else [content[i : i + 1] for i in range(len(content))]:
                self.wfile.write(byte)
                time.sleep(fake.drip)
        except OSError:
            pass  # the client has gone

    def log_message(self, *arguments: Any) -> None:
        pass


def generated(ids: list[Any], version: str | None = "default", **change: Any) -> dict[str, Any]:
    spans = None if version is None else [{"version": version, "start": 0, "end": len(ids)}]
    content = [{"token_id": token, "logprob": -0.5, "rank": 1, "top_logprobs": []} for token in ids]
    choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
    return {"request_id": "x", "choices": [choice | {"weight_versions": spans} | change]}


@pytest.fixture()
def fake() -> Iterator[Fake]:
    server = Fake()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def make(fake: Fake, timeout: float = 10.0, **settings: Any) -> VllmServerSampler:
    client = Client(fake.url, timeout=timeout)

    def push(weights: Any, version: str) -> None:
        client.version = version
        client.start_weight_update()
        client.update_weights({"names": [name for name, _ in weights()]})
        client.finish_weight_update()

    return VllmServerSampler(client, push, BOUNDS, **settings)


def weights() -> Iterator[tuple[str, torch.Tensor]]:
    yield "one", torch.tensor([1.0])


def test_tokens_in_tokens_and_log_probs_out(fake):
    sampled = make(fake).sample(PROMPTS, SAMPLING, ["a", "b"], keys=[1, 2])
    assert sampled == [Sampled((5, 7), (-0.5, -0.5), True), Sampled((9, 7), (-0.5, -0.5), True)]
    bodies = {tuple(body["token_ids"]): body["sampling_params"] for body in fake.bodies("/inference/v1/generate")}
    assert bodies.keys() == {(5, 6), (9,)}
    assert bodies[5, 6]["seed"] == seed_number("a", SEED_BITS) and bodies[9,]["seed"] == seed_number("b", SEED_BITS)
    assert bodies[9,]["temperature"] == 0.5 and bodies[9,]["max_tokens"] == 4 and bodies[9,]["stop_token_ids"] == [7]


def test_a_constraint_is_a_grammar_for_the_server(fake):
    make(fake).sample(PROMPTS, SAMPLING, ["a", "b"], constraint=Grammar())
    for body in fake.bodies("/inference/v1/generate"):
        assert body["sampling_params"]["structured_outputs"] == {"grammar": Grammar.grammar}


def test_no_more_requests_at_a_time_than_allowed_and_the_order_stays(fake):
    fake.delay = 0.02
    prompts = [[number] for number in range(8, 32)]
    sampled = make(fake, concurrency=3).sample(prompts, SAMPLING, [str(number) for number in prompts])
    assert [one.ids[0] for one in sampled] == list(range(8, 32))
    assert 1 < fake.most_active <= 3


def test_the_key_is_sent_and_never_shown(fake, monkeypatch, caplog):
    monkeypatch.setenv("VLLM_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    client = Client(fake.url, "VLLM_TEST_KEY")
    assert client.connect().max_model_len == 50
    assert fake.requests[0][2] == f"Bearer {KEY}"
    fake.replies["/v1/models"] = (401, b"no")
    with pytest.raises(UserError, match=r"answers 401; set engine\.api_key_variable") as error:
        client.connect()
    assert KEY not in str(error.value) and KEY not in caplog.text and KEY not in repr(client)


@pytest.mark.parametrize("key", ["", "  ", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_sent_is_refused(fake, monkeypatch, key):
    monkeypatch.setenv("VLLM_TEST_KEY", key)
    with pytest.raises(UserError, match=r"engine\.api_key_variable: 'VLLM_TEST_KEY' holds no key") as error:
        Client(fake.url, "VLLM_TEST_KEY")
    assert not key.strip() or key not in str(error.value)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UserError, match=r"engine\.url: .* is no address"):
        Client(url)


def test_where_nothing_listens_the_user_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=rf"engine\.url: the vLLM server at 127\.0\.0\.1:{port} does not answer"):
        Client(f"http://127.0.0.1:{port}").connect()


def test_a_server_that_dies_stops_the_run(fake):
    sampler = make(fake)
    fake.shutdown()
    fake.server_close()
    with pytest.raises(RunStopped, match="does not answer"):
        sampler.sample(PROMPTS, SAMPLING, ["a", "b"])


def test_a_server_that_is_too_slow_stops_the_run(fake):
    fake.delay = 1.0
    with pytest.raises(RunStopped, match=r"did not answer within 0\.1 seconds"):
        make(fake, timeout=0.1).sample(PROMPTS, SAMPLING, ["a", "b"])


def test_an_answer_that_never_ends_stops_the_run(fake):
    """Each byte comes in time, the whole does not."""
    fake.drip = 0.02
    with pytest.raises(RunStopped, match=r"did not answer within 0\.3 seconds"):
        make(fake, timeout=0.3).sample(PROMPTS[:1], SAMPLING, ["a"])


def test_an_answer_without_bound_is_not_read(fake):
    fake.replies["/inference/v1/generate"] = (200, b"[" * 1_000_000)
    with pytest.raises(RunStopped, match="an answer of more than 7000 bytes"):
        make(fake).sample(PROMPTS, SAMPLING, ["a", "b"])


LOG_PROBS = {"content": [{"token_id": 5, "logprob": -0.5}]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "cannot be read"),
        (b"\xff\xfe{", "cannot be read"),
        (b"[" * 5000, "cannot be read"),
        (b"null", "cannot be read"),
        (b'{"choices": []}', "cannot be read: choices"),
        (json.dumps({"choices": [generated([5])["choices"][0]] * 2}).encode(), "cannot be read: choices"),
        (json.dumps(generated([5], logprobs=None)).encode(), r"cannot be read: choices\.0\.logprobs"),
        (json.dumps(generated(["5"])).encode(), "cannot be read"),
        (json.dumps(generated([5.5])).encode(), "cannot be read"),
        (json.dumps(generated([10**30])).encode(), "not a number below 100"),
        (json.dumps(generated([-5])).encode(), "not a number below 100"),
        (json.dumps(generated([500])).encode(), "not a number below 100"),
        (json.dumps(generated([])).encode(), "no list of 1 to 4 token ids"),
        (json.dumps(generated([5] * 5)).encode(), "no list of 1 to 4 token ids"),
        (json.dumps(generated([5, 7], logprobs=LOG_PROBS)).encode(), "one log-prob for each token"),
        (json.dumps(generated([6], logprobs=LOG_PROBS)).encode(), "one log-prob for each token"),
        (json.dumps(generated([5])).replace("-0.5", "NaN").encode(), "a log-prob is not a number"),
        (json.dumps(generated([5])).replace("-0.5", "-1e999").encode(), "a log-prob is not a number"),
        (json.dumps(generated([5])).replace("-0.5", "-9999.0").encode(), "a log-prob is not a number"),
        (json.dumps(generated([5], finish_reason="abort")).encode(), "ended for the reason 'abort'"),
    ],
)
def test_garbage_stops_the_run(fake, content, sentence):
    fake.replies["/inference/v1/generate"] = (200, content)
    with pytest.raises(RunStopped, match=sentence):
        make(fake).sample(PROMPTS[:1], SAMPLING, ["a"])


def test_a_refusal_is_shown_in_one_short_line(fake):
    fake.replies["/inference/v1/generate"] = (400, b"too\nlong" + b" prompt" * 1000)
    with pytest.raises(RunStopped, match="answers 400 to inference/v1/generate: 'too long prompt") as error:
        make(fake).sample(PROMPTS, SAMPLING, ["a", "b"])
    assert len(str(error.value)) < 400
    fake.replies["/inference/v1/generate"] = (404, b"")
    with pytest.raises(RunStopped, match=r"has no route inference/v1/generate; start it .* --enable-scale-out"):
        make(fake).sample(PROMPTS, SAMPLING, ["a", "b"])


def test_a_publish_goes_through_the_weight_routes(fake):
    sampler = make(fake)
    sampler.publish(weights)
    paths = [path for path, _, _ in fake.requests]
    assert paths == [
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
        "/weight_info",
        "/reset_prefix_cache",
    ]
    assert fake.bodies("/update_weights") == [{"update_info": {"names": ["one"]}}]
    assert sampler.version == fake.version != "default"
    assert len(sampler.sample(PROMPTS, SAMPLING, ["a", "b"])) == 2


def test_a_server_that_was_started_anew_is_noticed(fake):
    sampler = make(fake)
    sampler.publish(weights)
    fake.version = "default"
    with pytest.raises(RunStopped, match=r"with the weights default and not with .* started anew"):
        sampler.sample(PROMPTS, SAMPLING, ["a", "b"])
    fake.replies["/inference/v1/generate"] = (200, json.dumps(generated([5], None)).encode())
    with pytest.raises(RunStopped, match="with the weights none that it names"):
        sampler.sample(PROMPTS[:1], SAMPLING, ["a"])


def test_a_publish_that_did_not_arrive_stops_the_run(fake):
    fake.replies["/weight_info"] = (200, b'{"weight_version": "default"}')
    with pytest.raises(RunStopped, match=r"did not take the weights .* it names 'default'"):
        make(fake).publish(weights)
    del fake.replies["/weight_info"]
    fake.replies["/reset_prefix_cache"] = (200, b'{"success": false}')
    with pytest.raises(RunStopped, match="did not empty its prefix cache"):
        make(fake).publish(weights)


def test_a_transfer_that_fails_is_named(fake):
    def push(weights: Any, version: str) -> None:
        raise RuntimeError("NCCL error")

    sampler = VllmServerSampler(Client(fake.url), push, BOUNDS)
    with pytest.raises(RunStopped, match="new weights: RuntimeError: NCCL error"):
        sampler.publish(weights)


def test_weights_go_to_a_server_by_nccl(fake, monkeypatch):
    fake_vllm.install(monkeypatch)
    from seed_opd.policy.vllm_weights import NcclPush

    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    client = Client(fake.url)
    sampler = VllmServerSampler(client, NcclPush(client, torch.bfloat16, torch.device("cpu"), rank=0), BOUNDS)
    sampler.publish(weights)
    sampler.publish(weights)
    [begun] = fake.bodies("/init_weight_transfer_engine")
    assert begun == {"init_info": {"info": "NCCLTrainerInitInfo", "world_size": 3}}  # two workers and the trainer
    assert fake.bodies("/update_weights") == [{"update_info": {"weights": [["one", "torch.bfloat16", 1.0]]}}] * 2
    assert sampler.version == fake.version


def test_other_training_processes_only_take_part_in_gathering(fake, monkeypatch):
    fake_vllm.install(monkeypatch)
    from seed_opd.policy.vllm_weights import NcclPush

    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    passes = []

    def gathered() -> Iterator[tuple[str, torch.Tensor]]:
        passes.append(1)
        yield from weights()

    NcclPush(Client(fake.url), torch.bfloat16, torch.device("cpu"), rank=1)(gathered, "label")
    assert len(passes) == 2  # once for names and shapes, once to send, as on the main process
    assert fake.requests == []
