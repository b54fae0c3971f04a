"""An analyzer behind an OpenAI-compatible server, for stage 1.

Every request has a timeout and a bounded number of tries. What came back is stored at once, so that a restart asks only for
what is missing. A request that stays without an answer gives a skill with the status "error"; only what the user has to
mend (key, address, model) stops the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import tenacity

from seed_opd.environments.messages import interleave
from seed_opd.errors import UserError
from seed_opd.files import write_atomically
from seed_opd.hindsight.prompts import analyzer_prompt
from seed_opd.hindsight.schema import Limits, json_schema, parse
from seed_opd.hindsight.serialise import images_shown
from seed_opd.trajectory import IMAGE, Skill, Trajectory

PARSE_ATTEMPTS = 2
"""How often a server is asked until its answer parses (reference code)."""

SHOWN_CHARACTERS = 2000
"""How much of an answer that did not parse is shown when asking again (reference code)."""

LONGEST_WAIT = 120.0
"""Seconds; a longer Retry-After is cut to this."""


class RemoteAnalyzer:
    """Asks a server at `base_url` (ending in its version, as in "https://host/v1") for one skill per trajectory.

    The key is read from the environment variable named `api_key_variable`; None sends no key. `timeout` and `back_off` (the
    first wait between tries, doubled each time) are in seconds. `store` is a JSON-lines file of what came back.
    `max_prompt_characters` bounds a prompt; longer episodes lose their oldest middle steps, counted in `dropped_steps`.
    `prompt_tokens` and `completion_tokens` are what the server says it used. Raises UserError for a missing key.
    """

    name = "remote"

    def __init__(
        self,
        base_url: str,
        model: str,
        store: Path,
        *,
        api_key_variable: str | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        back_off: float = 1.0,
        concurrency: int = 8,
        max_tokens: int = 1024,
        max_prompt_characters: int | None = None,
        limits: Limits | None = None,
        general: bool = False,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise UserError(f"analyzer.base_url: {base_url!r} is no address; write it as in 'https://host/v1'.")
        self.model = model
        self.attempts = attempts
        self.back_off = back_off
        self.concurrency = concurrency
        self.max_tokens = max_tokens
        self.max_prompt_characters = max_prompt_characters
        self.limits = limits or Limits()
        self.general = general
        self.dropped_steps = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._base_url = base_url.rstrip("/")
        self._client = httpx.Client(headers=_headers(api_key_variable), timeout=timeout)
        self._lock = threading.Lock()
        self._store = store
        self._skills = _load(store)

    def analyze(self, trajectories: Sequence[Trajectory]) -> list[Skill]:
        """Raises UserError when the server refuses the key or does not know the address or the model."""
        room, general = self.max_prompt_characters, self.general
        prompts = [analyzer_prompt(trajectory, room, general=general) for trajectory in trajectories]
        self.dropped_steps += sum(prompt.dropped_steps for prompt in prompts)
        asked = [
            Message(prompt.text, tuple(images_shown(trajectory, prompt.text)))
            for prompt, trajectory in zip(prompts, trajectories, strict=True)
        ]
        keys = [self._key(message) for message in asked]
        missing = {key: message for key, message, prompt in zip(keys, asked, prompts, strict=True) if prompt.fits}
        failed = self._ask_all({key: message for key, message in missing.items() if key not in self._skills})
        too_long = Skill("", "", "error", f"the prompt is longer than {self.max_prompt_characters} characters", self.name)
        return [self._skills.get(key) or failed.get(key, too_long) for key in keys]

    def _ask_all(self, messages: dict[str, Message]) -> dict[str, Skill]:
        """Ask for what is missing; what failed is returned, not stored, so that a restart asks again."""
        executor = ThreadPoolExecutor(self.concurrency)
        try:
            skills = dict(zip(messages, executor.map(self._ask_and_store, messages.items()), strict=True))
        finally:
            executor.shutdown(cancel_futures=True)
        return {key: skill for key, skill in skills.items() if skill.status == "error"}

    def _ask_and_store(self, item: tuple[str, Message]) -> Skill:
        key, message = item
        try:
            skill = self._write(message)
        except (_Transient, _Refused) as error:
            return Skill("", "", "error", str(error), self.name)
        with self._lock:
            self._skills[key] = skill
            _append(self._store, {"key": key, "skill": skill.to_json()})
        return skill

    def _write(self, first: Message) -> Skill:
        message = first
        for _ in range(PARSE_ATTEMPTS):
            answer = self._patiently(message)
            skill = parse(answer, self.limits, self.name)
            if skill.usable:
                break
            message = replace(first, text=f"{first.text}\n\n{self._again(skill)}")
        return skill

    def _again(self, skill: Skill) -> str:
        shown = skill.raw[-SHOWN_CHARACTERS:].replace(IMAGE, "image")  # it must not say where pictures go
        schema = json.dumps(json_schema(self.limits))
        return f"Your last answer ended with:\n{shown}\nIt is {skill.status}. Answer with JSON of this schema:\n{schema}"

    def _patiently(self, message: Message) -> str:
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=tenacity.retry_if_exception_type(_Transient),
            reraise=True,
        )
        return retrying(self._ask, message)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, _Transient) else 0.0
        return min(max(self.back_off * 2.0 ** (state.attempt_number - 1), asked), LONGEST_WAIT)

    def _ask(self, message: Message) -> str:
        """One request at temperature 0; the text of its answer."""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": message.content}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        try:
            response = self._client.post(f"{self._base_url}/chat/completions", json=body)
        except httpx.RequestError as error:
            raise _Transient(f"no answer from the server: {type(error).__name__}") from error
        self._check(response)
        return self._read(response)

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (401, 403):
            raise UserError(f"analyzer.api_key_variable: the server answers {status}; set the variable to a key it accepts.")
        if status == 404:
            where = f"analyzer.base_url, analyzer.model: {self._base_url!r} answers 404 for {self.model!r}"
            raise UserError(f"{where}; correct the address or the model.")
        if status in (408, 409, 425, 429) or status >= 500:
            raise _Transient(f"the server answers {status}", _retry_after(response))
        if status != 200:
            raise _Refused(f"the server answers {status}")

    def _read(self, response: httpx.Response) -> str:
        try:
            answer = response.json()
            content = answer["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise _Transient("the server's answer holds no message") from error
        with self._lock:
            self.prompt_tokens += _used(answer, "prompt_tokens")
            self.completion_tokens += _used(answer, "completion_tokens")
        return content if isinstance(content, str) else ""

    def _key(self, message: Message) -> str:
        return hashlib.sha256(json.dumps([self.model, message.text, *message.images]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Message:
    """What a server is asked: a text, and the pictures for its places, PNG files in base64."""

    text: str
    images: tuple[str, ...] = ()

    @property
    def content(self) -> str | list[dict[str, Any]]:
        """As the OpenAI protocol has it: the text, or its pieces and the pictures between them."""
        if not self.images:
            return self.text
        parts: list[dict[str, Any]] = []
        for piece, image in interleave(self.text, self.images):
            parts.append({"type": "text", "text": piece})
            if image is not None:
                parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}})
        return parts


class _Transient(Exception):
    """Worth another try, after `retry_after` seconds or more."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class _Refused(Exception):
    """Another try would get the same answer."""


def _headers(api_key_variable: str | None) -> dict[str, str]:
    if api_key_variable is None:
        return {}
    key = os.environ.get(api_key_variable, "").strip()
    if not key:
        raise UserError(
            f"analyzer.api_key_variable: {api_key_variable!r} is not set in the environment; export it with the key."
        )
    return {"Authorization": f"Bearer {key}"}


def _used(answer: dict[str, Any], name: str) -> int:
    """A count of tokens, 0 where the server does not say."""
    usage = answer.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0


def _retry_after(response: httpx.Response) -> float:
    """Seconds that the server asks to wait; it may say so as a number or as a date."""
    value = response.headers.get("Retry-After", "")
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _load(store: Path) -> dict[str, Skill]:
    """What came back in earlier runs; a line that a kill cut short is dropped."""
    if not store.exists():
        return {}
    *lines, cut = store.read_text(encoding="utf-8", errors="replace").split("\n")
    rows = [row for row in map(_row, lines) if row]
    if cut or len(rows) < len(lines):
        write_atomically(store, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return {row["key"]: Skill.from_json(row["skill"]) for row in rows}


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        Skill.from_json(row["skill"])
        return row if isinstance(row["key"], str) else None
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _append(store: Path, row: dict[str, Any]) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
