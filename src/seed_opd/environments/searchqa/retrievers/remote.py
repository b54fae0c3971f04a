"""A retriever behind a server: ours, Search-R1's, or one that speaks as they do.

Every request has a deadline and a bounded number of tries. What stays without a usable answer ends the run with a sentence,
as nothing found would teach a policy that searching is useless.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any, Literal

import httpx
import tenacity

from seed_opd.environments.searchqa.passages import passage_of
from seed_opd.environments.searchqa.retrievers.base import Hit, RetrieverFailed
from seed_opd.errors import UserError

Form = Literal["queries", "query"]
"""How a request asks: all queries in a list (Search-R1's server), or one query each (verl-agent's client)."""

PROBE = "history of the world"
LONGEST_ANSWER = 64 * 2**20  # bytes
SHOWN = 200  # characters of a wrong answer that an error shows


class _Wrong(Exception):
    """An answer that is no list of passages."""


class _Unavailable(Exception):
    """A server that says that it cannot answer now."""


class RemoteRetriever:
    """Asks the server at `url` ("http://host:8000" or with "/retrieve"). `timeout` and `back_off` (the first wait between
    tries, doubled each time) are in seconds.

    Raises UserError at the start when nothing answers there or its index is empty, RetrieverFailed later.
    """

    def __init__(
        self, url: str, *, form: Form = "queries", timeout: float = 30.0, attempts: int = 4, back_off: float = 0.5
    ) -> None:
        self._base = url.rstrip("/").removesuffix("/retrieve")
        self._form = form
        self._attempts = attempts
        self._back_off = back_off
        self._timeout = timeout
        self._client = httpx.Client(timeout=timeout)
        about = self._about()
        self._size = about.get("passages")
        self._fingerprint = str(about.get("fingerprint") or hashlib.sha256(self._base.encode()).hexdigest())

    @property
    def name(self) -> str:
        return f"the server at {self._base}"

    @property
    def size(self) -> int | None:
        return self._size

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def search(self, queries: Sequence[str], top: int) -> list[list[Hit]]:
        if self._form == "query":
            return [self._ask({"query": query, "topk": top, "return_scores": True}, 1, top)[0] for query in queries]
        body = {"queries": list(queries), "topk": top, "return_scores": True}
        return self._ask(body, len(queries), top) if queries else []

    def _ask(self, body: dict[str, Any], count: int, top: int) -> list[list[Hit]]:
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=tenacity.wait_exponential(self._back_off),
            retry=tenacity.retry_if_exception_type((httpx.TransportError, _Unavailable, _Wrong)),
            reraise=True,
        )
        try:
            return retrying(self._once, body, count, top)
        except (httpx.HTTPError, _Unavailable, _Wrong) as error:
            raise RetrieverFailed(self._sentence(error)) from error

    def _once(self, body: dict[str, Any], count: int, top: int) -> list[list[Hit]]:
        end = time.monotonic() + self._timeout
        with self._client.stream("POST", f"{self._base}/retrieve", json=body) as response:
            content = _content(response, end)
        shown = repr(content[:SHOWN].decode("utf-8", "replace"))
        if response.status_code == 429 or response.status_code >= 500:
            raise _Unavailable(f"status {response.status_code}: {shown}")
        if not response.is_success:
            raise RetrieverFailed(
                f"retriever: {self._base}/retrieve refused a request of the form {self._form!r} with status "
                f"{response.status_code} ({shown}); check retriever.url and retriever.form."
            )
        return _read(content, shown, count, top)

    def _sentence(self, error: Exception) -> str:
        what = f"{type(error).__name__.lstrip('_')}: {error}" if str(error) else type(error).__name__
        return (
            f"retriever: {self._base} gave no usable answer in {self._attempts} tries of {self._timeout:g} s each ({what}); "
            "see that the server is up and sends passages, or raise retriever.timeout, and start again."
        )

    def _about(self) -> dict[str, Any]:
        """What the server says about itself, if it does; that something answers and has passages is checked in any case."""
        try:
            end = time.monotonic() + self._timeout
            with self._client.stream("GET", f"{self._base}/health") as response:
                about = json.loads(_content(response, end)) if response.is_success else {}
        except (httpx.HTTPError, _Unavailable, _Wrong, ValueError, RecursionError):
            about = {}
        if not isinstance(about, dict) or not isinstance(about.get("passages"), int):
            about = {}
        try:
            found = bool(about.get("passages")) if "passages" in about else any(self.search([PROBE], 1))
        except RetrieverFailed as error:
            raise UserError(str(error)) from error
        if not found:
            raise UserError(
                f"retriever: {self._base} answers, but has no passages (asked for {PROBE!r}): its index is empty or "
                "missing; build the index and start the server again."
            )
        return about


def _content(response: httpx.Response, end: float) -> bytes:
    """The body; one that is endless or comes drop by drop is given up."""
    content = bytearray()
    for block in response.iter_bytes():
        content += block
        if len(content) > LONGEST_ANSWER:
            raise _Wrong(f"the answer has more than {LONGEST_ANSWER:,} bytes")
        if time.monotonic() > end:
            raise _Unavailable("the answer did not end in time")
    return bytes(content)


def _read(content: bytes, shown: str, count: int, top: int) -> list[list[Hit]]:
    """The hits in an answer; raises _Wrong for anything but one list of passages for each query."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"the answer is not JSON: {shown}") from error
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, list) or len(result) != count or not all(isinstance(found, list) for found in result):
        raise _Wrong(f'the answer has no "result" with {count} lists: {shown}')
    return [[_hit(item) for item in found[:top]] for found in result]


def _hit(item: Any) -> Hit:
    """With scores a passage stands under "document", without them it stands alone."""
    document = item.get("document", item) if isinstance(item, dict) else item
    score = item.get("score", 0.0) if isinstance(item, dict) else 0.0
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise _Wrong(f"a score is {score!r}")
    try:
        return Hit(passage_of("a passage of the server", document), float(score))
    except (UserError, OverflowError) as error:
        raise _Wrong(str(error)) from error
