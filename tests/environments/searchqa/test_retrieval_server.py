"""A server in a process of its own and its client: both request forms, many clients, and everything that goes wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from serving import ROWS, misbehaving, running, serving, write_passages

from seed_opd.environments import Environment, make
from seed_opd.environments.searchqa.passages import read_corpus
from seed_opd.environments.searchqa.retrievers import RetrieverFailed
from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever
from seed_opd.environments.searchqa.retrievers.remote import RemoteRetriever
from seed_opd.errors import UserError


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_passages(tmp_path_factory.mktemp("passages"))


@pytest.fixture(scope="module")
def url(passages: Path) -> Iterator[str]:
    with running(*serving(passages)) as address:
        yield address


def start(environment: Environment) -> None:
    environment.reset(environment.tasks("train")[0])


def impatient(url: str, **options: float) -> RemoteRetriever:
    return RemoteRetriever(url, **{"timeout": 0.5, "attempts": 2, "back_off": 0.01, **options})


# ---- ours


@pytest.mark.parametrize("form", ["queries", "query"])
def test_the_client_finds_over_the_server_what_the_retriever_finds(url: str, passages: Path, form: str) -> None:
    local, remote = Bm25Retriever(read_corpus(passages)), RemoteRetriever(url + "/retrieve", form=form)
    queries = ["painter Torvale", "the river Esk", "boats"]
    assert remote.search(queries, 2) == local.search(queries, 2)
    assert (remote.size, remote.fingerprint) == (local.size, local.fingerprint)


def test_both_forms_of_a_request_are_understood(url: str) -> None:
    many = httpx.post(f"{url}/retrieve", json={"queries": ["Esk", "novel"], "topk": 1, "return_scores": True}).json()
    one = httpx.post(f"{url}/retrieve", json={"query": "Esk", "topk": 1, "return_scores": True}).json()
    assert [[hit["document"] for hit in hits] for hits in many["result"]] == [[ROWS[1]], [ROWS[3]]]
    assert one["result"] == many["result"][:1] and one["result"][0][0]["score"] > 0
    assert httpx.post(f"{url}/retrieve", json={"queries": ["Esk"], "topk": 1}).json() == {"result": [[ROWS[1]]]}
    assert len(httpx.post(f"{url}/retrieve", json={"query": "Torvale"}).json()["result"][0]) == 3


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b"{}", 400),
        (b'{"queries": "Esk"}', 400),
        (b'{"queries": [1]}', 400),
        (b'{"query": null}', 400),
        (b'{"query": "Esk", "topk": 0}', 400),
        (b'{"query": "Esk", "topk": true}', 400),
        (b'{"query": "Esk", "topk": 1000000}', 400),
        (b'{"queries": [' + b'"a",' * 5000 + b'"a"]}', 400),
        (b"\xff\xfe", 400),
    ],
)
def test_a_bad_request_is_refused_with_a_sentence(url: str, content: bytes, status: int) -> None:
    answer = httpx.post(f"{url}/retrieve", content=content)
    assert answer.status_code == status and len(answer.json()["error"]) > 10
    assert httpx.get(f"{url}/elsewhere").status_code == httpx.post(f"{url}/elsewhere", json={}).status_code == 404


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1", ""])
def test_a_length_that_is_none_is_refused(url: str, length: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"POST /retrieve HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
        assert connection.recv(64).split()[1] in (b"411", b"413")


def test_many_clients_at_once_get_their_own_answers(url: str) -> None:
    queries = ["river Esk", "novel", "boats", "painter"]
    client = RemoteRetriever(url)
    alone = {query: client.search([query], 3) for query in queries}

    def ask(number: int) -> bool:
        own = client if number % 2 else RemoteRetriever(url)
        return own.search([queries[number % 4]], 3) == alone[queries[number % 4]]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(64)))


def test_an_environment_plays_over_a_server(url: str) -> None:
    environment = make("search", questions="generated", retriever=url)
    environment.reset(environment.tasks("train")[0])
    assert "[1] Torvale\nTorvale lies on the river Esk." in environment.step("<search>river Esk</search>").text


# ---- starting


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is no file"),
        ("", "holds no passages"),
        ('{"id": "1", "contents": "\\"A\\"\\nthe"}\n', "holds a word"),
        ('{"id": "1", "contents": "cut of', "corpus.jsonl:1 is not a JSON object"),
        ('{"id": "1", "contents": "\\"A\\"\\ntext"}\n{"id": "2"}\n', "corpus.jsonl:2 has no text"),
        ("7\n", "corpus.jsonl:1 has no text"),
    ],
)
def test_a_missing_empty_or_broken_index_is_an_error_at_the_start(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "corpus.jsonl"
    if content is not None:
        path.write_text(content.replace('\\"A\\"', '\\"the\\"'), encoding="utf-8")
    with pytest.raises(UserError, match=said):
        start(make("search", questions="generated", retriever=str(path)))


def test_the_command_ends_with_one_sentence_and_no_server(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, *serving(tmp_path / "none.jsonl")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("seed-opd: retriever.passages: ") and done.stderr.count("\n") == 1


def test_a_server_that_is_not_there_is_an_error_at_the_start() -> None:
    with pytest.raises(UserError, match="gave no usable answer in 2 tries"):
        impatient("http://127.0.0.1:9")


def test_a_server_that_says_nonsense_about_itself_is_asked_for_passages() -> None:
    with running(*misbehaving("deep_health")) as address:
        assert impatient(address).size is None


@pytest.mark.parametrize("mode", ["empty", "nothing", "drip_health"])
def test_a_server_over_an_empty_index_is_an_error_at_the_start(mode: str) -> None:
    with running(*misbehaving(mode)) as address, pytest.raises(UserError, match="its index is empty or missing"):
        impatient(address)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "sparse"}, "choose one of bm25, dense, remote"),
        ({"kind": "remote"}, "retriever.url"),
        ({"kind": "dense"}, "retriever.model"),
        ({"kind": "remote", "url": "localhost:8000"}, "is no address"),
        ({"kind": "remote", "url": "http://localhost:8000", "form": "xml"}, "'queries' or 'query'"),
        ({"k1": 2}, "k1: 2 belongs to no option; there are none"),
        ({"kind": "remote", "url": 3}, "retriever.url: 3 does not fit: input should be a valid string"),
        ({"kind": "remote", "url": "http://x", "timeout": "1"}, "retriever.timeout: '1' does not fit"),
        ({"kind": "remote", "url": "http://x", "passages": "p.jsonl"}, "retriever.passages: 'p.jsonl' is not for remote"),
        ({"passages": 3}, "retriever.passages: 3 is no file"),
    ],
)
def test_wrong_options_are_named(options: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make("search", questions="generated", retriever=options)


# ---- servers that fail later


GARBAGE = [
    "truncated",
    "html",
    "list",
    "no_result",
    "too_few",
    "not_lists",
    "no_text",
    "text_score",
    "null",
    "deep",
    "huge_score",
]


@pytest.mark.parametrize("mode", [*GARBAGE, "slow", "drip"])
def test_no_usable_answer_stops_with_a_named_error_and_never_looks_like_nothing_found(mode: str) -> None:
    with running(*misbehaving(mode)) as address:
        client = impatient(address)
        with pytest.raises(RetrieverFailed, match=f"retriever: {address} gave no usable answer in 2 tries"):
            client.search(["Esk"], 3)


def test_a_server_that_dies_stops_the_episode_with_a_named_error() -> None:
    with running(*misbehaving("dies")) as address:
        options = {"kind": "remote", "url": address, "timeout": 0.5, "attempts": 2, "back_off": 0.01}
        environment = make("search", questions="generated", retriever=options)
        environment.reset(environment.tasks("train")[0])
        assert "Title" in environment.step("<search>Esk</search>").text
        with pytest.raises(RetrieverFailed, match="see that the server is up"):
            environment.step("<search>Esk</search>")


def test_a_server_that_is_busy_is_asked_again() -> None:
    with running(*misbehaving("busy_once")) as address:
        assert impatient(address).search(["Esk"], 3)[0][0].passage.title == "Title"


def test_a_server_that_refuses_the_form_is_asked_once_and_says_so() -> None:
    with running(*misbehaving("refuses")) as address, pytest.raises(RetrieverFailed, match=r"status 422 .* retriever\.form"):
        impatient(address).search(["Esk"], 3)


def test_passages_without_scores_are_read_too() -> None:
    with running(*misbehaving("plain")) as address:
        assert [hit.passage.text for hit in impatient(address).search(["Esk"], 3)[0]] == ["text"]
