import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seed_opd.errors import UserError
from seed_opd.hindsight.remote import RemoteAnalyzer
from seed_opd.trajectory import IMAGE, Trajectory

from .episodes import CLEAN, LOST, episode

GOOD = json.dumps({"episode_summary": "it went well.", "episode_skill": "open cabinet 2 and take mug 1."})
Answer = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None never answers."""


def message(content: Any) -> Answer:
    body = {"choices": [{"message": {"content": content}}], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}
    return 200, {}, json.dumps(body).encode()


class Server:
    """A server that gives its answers one by one, then the last one for ever; it keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[dict[str, Any], str | None]] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((body, self.headers["Authorization"]))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                if answer is None:
                    outer.released.wait(10)
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*answers: Answer) -> Server:
        servers.append(Server(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


Serve = Callable[..., Server]


def analyzer(server: Server, folder: Path, **options: Any) -> RemoteAnalyzer:
    return RemoteAnalyzer(
        server.url, "judge", folder / "skills.jsonl", **{"back_off": 0.01, "attempts": 6, "concurrency": 1, **options}
    )


def test_trouble_is_waited_out(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        (500, {}, b"sorry"),
        None,
        (200, {}, b"<html>garbage</html>"),
        (200, {}, b'{"choices": []}'),
        (429, {"Retry-After": "0.02"}, b""),
        message(GOOD),
    )
    asked = analyzer(server, tmp_path, timeout=0.3)
    [skill] = asked.analyze([CLEAN])
    assert (skill.status, skill.summary, skill.skill) == ("ok", "it went well.", "open cabinet 2 and take mug 1.")
    assert len(server.requests) == 6
    assert (asked.prompt_tokens, asked.completion_tokens) == (10, 3)


def test_the_request(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    analyzer(server, tmp_path, max_tokens=77).analyze([CLEAN])
    [(body, authorization)] = server.requests
    assert (body["model"], body["temperature"], body["max_tokens"], authorization) == ("judge", 0, 77, None)
    [only] = body["messages"]
    assert only["role"] == "user" and CLEAN.goal in only["content"]


def test_tries_are_bounded_and_failures_are_counted(serve: Serve, tmp_path: Path) -> None:
    server = serve((503, {}, b""))
    [skill] = analyzer(server, tmp_path, attempts=3).analyze([CLEAN])
    assert (skill.status, skill.raw, len(server.requests)) == ("error", "the server answers 503", 3)


def test_no_server_at_all(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    server.close()
    [skill] = analyzer(server, tmp_path, attempts=2, timeout=0.5).analyze([CLEAN])
    assert (skill.status, skill.raw) == ("error", "no answer from the server: ConnectError")


def test_a_refused_request_is_not_repeated(serve: Serve, tmp_path: Path) -> None:
    server = serve((400, {}, b"too long"))
    [skill] = analyzer(server, tmp_path).analyze([CLEAN])
    assert (skill.status, skill.raw, len(server.requests)) == ("error", "the server answers 400", 1)


def test_asked_again_with_the_schema_when_it_does_not_parse(serve: Serve, tmp_path: Path) -> None:
    server = serve(message("x" * 5000 + "I would say: \ud800 open it."), message(GOOD))
    [skill] = analyzer(server, tmp_path).analyze([CLEAN])
    assert skill.usable
    second = server.requests[1][0]["messages"][0]["content"]
    assert "open it." in second and '"maxLength"' in second and "x" * 1900 in second and "x" * 2001 not in second


@pytest.mark.parametrize(
    ("content", "status"), [("no", "unparsed"), (None, "unparsed"), ('{"episode_skill": "string"}', "placeholder")]
)
def test_an_answer_that_never_parses_keeps_its_status(
    serve: Serve, tmp_path: Path, content: str | None, status: str
) -> None:
    server = serve(message(content))
    [skill] = analyzer(server, tmp_path).analyze([CLEAN])
    assert (skill.status, skill.raw, len(server.requests)) == (status, content or "", 2)


def test_a_restart_asks_only_for_what_is_missing(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    assert [skill.status for skill in analyzer(server, tmp_path).analyze([CLEAN])] == ["ok"]
    with (tmp_path / "skills.jsonl").open("a") as stream:
        stream.write('{"key": "cut sho')  # as a kill leaves it
    first, second = analyzer(server, tmp_path).analyze([CLEAN, LOST])
    assert first == second and len(server.requests) == 2
    analyzer(server, tmp_path).analyze([LOST, CLEAN, LOST])
    assert len(server.requests) == 2


def test_errors_are_asked_for_again(serve: Serve, tmp_path: Path) -> None:
    server = serve((500, {}, b""), message(GOOD))
    asked = analyzer(server, tmp_path, attempts=1)
    assert [asked.analyze([CLEAN])[0].status for _ in range(2)] == ["error", "ok"]


def test_another_model_is_another_question(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    analyzer(server, tmp_path).analyze([CLEAN])
    RemoteAnalyzer(server.url, "other", tmp_path / "skills.jsonl").analyze([CLEAN])
    assert [body["model"] for body, _ in server.requests] == ["judge", "other"]


def test_order_is_kept_under_concurrency(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    server.answers = [message(GOOD)]
    many: list[Trajectory] = [episode(f"put a mug{i} in desk.", "pick", [("look", "You see.")]) for i in range(12)]
    skills = analyzer(server, tmp_path, concurrency=4).analyze([*many, *many])
    assert len(skills) == 24 and all(skill.usable for skill in skills)
    assert len(server.requests) == 12
    assert len((tmp_path / "skills.jsonl").read_text().splitlines()) == 12


def test_an_episode_that_cannot_fit_is_not_sent(serve: Serve, tmp_path: Path) -> None:
    server = serve(message(GOOD))
    asked = analyzer(server, tmp_path, max_prompt_characters=50)
    [skill] = asked.analyze([CLEAN])
    assert (skill.status, asked.dropped_steps, server.requests) == ("error", 6, [])


def test_a_server_sees_one_picture_per_step(serve: Serve, tmp_path: Path) -> None:
    steps = tuple(replace(step, image=f"picture{n}") for n, step in enumerate(CLEAN.steps))
    seen = replace(CLEAN, steps=(replace(steps[0], response=f"{IMAGE} here"), *steps[1:]))
    server = serve(message(f"{IMAGE} no JSON"), message(GOOD))
    [skill] = analyzer(server, tmp_path).analyze([seen])
    assert skill.usable
    for body, _ in server.requests:  # the second one shows the first answer, and no more places
        parts = body["messages"][0]["content"]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        assert urls == [f"data:image/png;base64,picture{n}" for n in range(len(steps))]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        assert CLEAN.goal in texts[0] and "Response: image here" in texts[1] and IMAGE not in "".join(texts)
    other = replace(seen, steps=(replace(seen.steps[0], image="another"), *seen.steps[1:]))
    analyzer(server, tmp_path).analyze([seen, other])
    assert len(server.requests) == 3  # what is shown is part of what is remembered


@pytest.mark.parametrize(("status", "word"), [(401, "api_key_variable"), (403, "api_key_variable"), (404, "analyzer.model")])
def test_what_the_user_must_mend_stops_the_run(serve: Serve, tmp_path: Path, status: int, word: str) -> None:
    with pytest.raises(UserError, match=word):
        analyzer(serve((status, {}, b"")), tmp_path).analyze([CLEAN, LOST])


def test_the_key_is_sent_and_appears_nowhere_else(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("JUDGE_KEY", "secret-123")
    server = serve((500, {}, b""), message(GOOD))
    asked = analyzer(server, tmp_path, api_key_variable="JUDGE_KEY")
    asked.analyze([CLEAN])
    assert server.requests[0][1] == "Bearer secret-123"
    assert "secret-123" not in caplog.text + repr(vars(asked)) + (tmp_path / "skills.jsonl").read_text()


def test_a_missing_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(UserError, match="JUDGE_KEY"):
        RemoteAnalyzer("http://127.0.0.1:1/v1", "judge", tmp_path / "s.jsonl", api_key_variable="JUDGE_KEY")


def test_an_address_without_a_scheme_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"analyzer\.base_url: 'localhost:80'"):
        RemoteAnalyzer("localhost:80", "judge", tmp_path / "s.jsonl")


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7, 7),
        ("", 0.5, 0.5),
        ("soon", 0.5, 0.5),
        ("-3", 0.5, 0.5),
        ("nan", 0.5, 0.5),
        ("1e9", 120, 120),
        ("date", 28, 30),
    ],
)
def test_waits(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, low: float, high: float) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    header = format_datetime(datetime.now(UTC) + timedelta(seconds=30)) if value == "date" else value
    analyzer(serve((429, {"Retry-After": header}, b""), message(GOOD)), tmp_path, back_off=0.5).analyze([CLEAN])
    [wait] = waited
    assert low <= wait <= high


def test_back_off_doubles(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    analyzer(serve((500, {}, b"")), tmp_path, back_off=0.5, attempts=4).analyze([CLEAN])
    assert waited == [0.5, 1.0, 2.0]


def test_stored_text_may_hold_any_line_separator(serve: Serve, tmp_path: Path) -> None:
    skill = "open it\u2028 and\x85 look inside it."
    server = serve(message(json.dumps({"episode_summary": "", "episode_skill": skill})))
    assert [analyzer(server, tmp_path).analyze([CLEAN])[0].skill for _ in range(2)] == [skill, skill]
    assert len(server.requests) == 1
