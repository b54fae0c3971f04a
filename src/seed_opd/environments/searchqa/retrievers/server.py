"""Any retriever over HTTP, with the standard library's server: POST /retrieve, GET /health.

Both request forms are understood: {"queries": [...], "topk": 3, "return_scores": true} and {"query": "...", ...}. The
answer is {"result": [[{"document": {"id", "contents"}, "score"}, ...], ...]}; without scores each document stands alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from seed_opd.environments.searchqa.retrievers.base import MOST_PASSAGES, Hit, Retriever, RetrieverFailed
from seed_opd.errors import UserError

MOST_QUERIES = 4096
LONGEST_BODY = 16 * 2**20  # bytes
SECONDS = 30.0
"""Longest wait for a client to send or to take anything."""


class _Bad(Exception):
    """A request that cannot be answered, and why."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


class RetrievalServer(ThreadingHTTPServer):
    """Serves a retriever at host and port (0 takes a free one); `serve_forever` runs it.

    Raises UserError where it cannot listen.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, retriever: Retriever, host: str = "127.0.0.1", port: int = 8000, top: int = 3) -> None:
        self.retriever = retriever
        self.top = top
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UserError(f"--port: {host}:{port} cannot be listened on ({error}); choose another one.") from error

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"


def serve(retriever: Retriever, host: str, port: int, say: Callable[[str], object]) -> None:
    """Serve until interrupted; says one line when requests are answered."""
    with RetrievalServer(retriever, host, port) as server:
        say(f"{retriever.name}: POST {server.url}/retrieve, GET {server.url}/health")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("stopped")


class _Handler(BaseHTTPRequestHandler):
    server: RetrievalServer
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    disable_nagle_algorithm = True  # else a small answer waits for the acknowledgement of its header
    wbufsize = -1

    def do_GET(self) -> None:
        if self.path != "/health":
            return self._send(HTTPStatus.NOT_FOUND, {"error": "ask POST /retrieve, or GET /health"})
        retriever = self.server.retriever
        about = {"retriever": retriever.name, "passages": retriever.size, "fingerprint": retriever.fingerprint}
        self._send(HTTPStatus.OK, about)

    def do_POST(self) -> None:
        try:
            if self.path != "/retrieve":
                raise _Bad("ask POST /retrieve", HTTPStatus.NOT_FOUND)
            answer = self._answer(self._body())
        except _Bad as error:
            self.close_connection = True  # an unread body must not be taken for the next request
            return self._send(error.status, {"error": str(error)})
        except RetrieverFailed as error:
            return self._send(HTTPStatus.BAD_GATEWAY, {"error": str(error)})
        self._send(HTTPStatus.OK, answer)

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Bad("a request needs a Content-Length", HTTPStatus.LENGTH_REQUIRED)
        if len(length) > len(str(LONGEST_BODY)) or int(length) > LONGEST_BODY:
            raise _Bad(f"a request has at most {LONGEST_BODY:,} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise _Bad("a request is one JSON object") from error
        if not isinstance(body, dict):
            raise _Bad("a request is one JSON object")
        return body

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        queries = [body["query"]] if "query" in body else body.get("queries")
        if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
            raise _Bad('a request needs "queries", a list of texts, or "query", a text')
        if len(queries) > MOST_QUERIES:
            raise _Bad(f"a request has at most {MOST_QUERIES} queries")
        top = body.get("topk")
        top = self.server.top if top is None else top
        if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MOST_PASSAGES:
            raise _Bad(f'"topk" is a whole number from 1 to {MOST_PASSAGES}')
        scored = bool(body.get("return_scores", "query" in body))  # Search-R1's default is without, a single query's with
        return {"result": [_documents(hits, scored) for hits in self.server.retriever.search(queries, top)]}

    def _send(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: they are many, and their text is not ours."""


def _documents(hits: Sequence[Hit], scored: bool) -> list[dict[str, Any]]:
    documents = [{"id": hit.passage.id, "contents": hit.passage.contents} for hit in hits]
    if not scored:
        return documents
    return [{"document": document, "score": hit.score} for document, hit in zip(documents, hits, strict=True)]
