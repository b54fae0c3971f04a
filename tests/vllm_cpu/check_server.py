"""The sampler over HTTP against a real `vllm serve` on the CPU: the conformance suite, and what is the server's alone.

Weights go through the server's own routes; a file stands for the NCCL broadcast.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance import PROMPTS, Conformance, learn
from file_transfer import FilePush, LostPush
from real import check_grammar, check_prefix_cache, check_temperatures, scored, trainer

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.engine import Engine, Sampling
from seed_opd.policy.vllm_answers import Bounds
from seed_opd.policy.vllm_server import Client, VllmServerSampler
from seed_opd.training.guards import check_first_step, check_published

KEY = "SEED_OPD_TEST_VLLM_KEY"
STARTING = 300.0
"""Seconds that a server may take to come up."""


@pytest.fixture(scope="module")
def url(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ[KEY] = "a-key-for-this-test"
    # as `vllm serve` does, which looks for a package of that very name and not for the rebuild's
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(saved)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "float32", "--max-model-len", "512", "--enforce-eager", "--enable-scale-out"]
    command += ["--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
    command += ["--structured-outputs-config", json.dumps({"backend": "xgrammar"})]
    command += ["--weight-transfer-config", json.dumps({"backend": "file"})]
    command += ["--worker-extension-cls", "file_transfer.Extension"]
    environment = os.environ | {"VLLM_SERVER_DEV_MODE": "1", "VLLM_API_KEY": os.environ[KEY]}
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
    try:
        _wait(f"http://127.0.0.1:{port}", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and server.poll() is None:
        try:
            Client(url, KEY).connect()
            return
        except UserError:
            time.sleep(1.0)
    raise AssertionError(f"the server did not come up:\n{log.read_text()[-4000:]}")


@pytest.fixture()
def sampler(url: str, tokenizer: Any, tmp_path: Path) -> VllmServerSampler:
    client = Client(url, KEY)
    bounds = Bounds((tokenizer.eos_token_id,), len(tokenizer), client.connect().max_model_len)
    return VllmServerSampler(client, FilePush(client, tmp_path), bounds)


class TestVllmServer(Conformance):
    @pytest.fixture(autouse=True)
    def _with(self, sampler: VllmServerSampler) -> None:
        self.sampler = sampler

    def make(self, folder: Path) -> Engine:
        return trainer(folder, self.sampler)


def test_log_probs_are_those_at_the_temperature(sampler, saved):
    check_temperatures(trainer(saved, sampler))


def test_answers_under_the_grammar_parse(sampler, saved):
    check_grammar(trainer(saved, sampler))


def test_a_growing_conversation_after_a_publish_reads_nothing_old(sampler, saved):
    check_prefix_cache(trainer(saved, sampler))


def test_the_guards_stop_a_run_whose_weights_do_not_arrive(sampler, saved, tmp_path):
    engine = trainer(saved, sampler)
    batch = scored(engine)
    check_first_step(engine, batch, "float32")
    check_published(engine, batch, "float32", "seed")
    sampler._push = LostPush(sampler._client, tmp_path)
    learn(engine, 1)
    with pytest.raises(RunStopped, match="disagree on a token"):
        check_published(engine, batch, "float32", "seed")


def test_weights_of_another_trainer_are_noticed(sampler, saved, url, tmp_path):
    engine = trainer(saved, sampler)
    client = Client(url, KEY)
    other = VllmServerSampler(client, FilePush(client, tmp_path / "other"), sampler._bounds)
    (tmp_path / "other").mkdir()
    trainer(saved, other)
    with pytest.raises(RunStopped, match="someone else uses it"):
        engine.sample(PROMPTS, Sampling(1.0, 4), list("abcd"))


def test_a_key_is_asked_for(url, monkeypatch):
    monkeypatch.setenv("SEED_OPD_WRONG", "wrong")
    with pytest.raises(UserError, match=r"answers 401; set engine\.api_key_variable"):
        Client(url, "SEED_OPD_WRONG").connect()


def test_the_server_says_how_many_gpus_take_part(sampler):
    assert sampler._client.world_size() == 1


def test_what_the_server_refuses_is_named(sampler):
    with pytest.raises(RunStopped, match=r"answers 4\d\d to inference/v1/generate"):
        sampler.sample([[10**7]], Sampling(1.0, 4), ["a"])
