"""Passages, and the JSON-lines file that they come from.

One object a line: `{"id", "contents"}` with contents = `"title"`, a line break, the text (Search-R1), or `{"id", "title",
"text"}`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seed_opd.errors import UserError


@dataclass(frozen=True, slots=True)
class Passage:
    """One entry of an encyclopaedia."""

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text as retrieval servers send them."""
        return f'"{self.title}"\n{self.text}'

    @classmethod
    def of(cls, id: str, contents: str) -> Passage:
        title, _, text = contents.partition("\n")
        return cls(id, title.strip().strip('"'), text.strip())


@dataclass(frozen=True)
class Corpus:
    """Passages of one source; `name` says where they come from. Raises UserError when there are none."""

    name: str
    passages: Sequence[Passage]

    def __post_init__(self) -> None:
        if not self.passages:
            raise UserError(f"passages: {self.name} holds no passages; give a JSON-lines file of id and contents.")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all passages, in their order."""
        digest = hashlib.sha256()
        for passage in self.passages:
            digest.update(f"{passage.id}\n{passage.contents}\n".encode("utf-8", "replace"))
        return digest.hexdigest()


def read_corpus(path: Path) -> Corpus:
    """Read a passages file; raises UserError, with file and line, for one that is missing, broken or empty."""
    try:
        with path.open(encoding="utf-8") as stream:
            passages = [_passage(f"{path}:{number}", line) for number, line in enumerate(stream, 1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"passages: {path} cannot be read ({error}); give a JSON-lines file of passages.") from error
    return Corpus(str(path), passages)


def _passage(where: str, line: str) -> Passage:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"passages: {where} is not a JSON object ({error}); mend or remove that line.") from error
    return passage_of(where, row)


def passage_of(where: str, row: Any) -> Passage:
    """The passage of one object; raises UserError that names `where` for any other shape."""
    if isinstance(row, dict):
        id = str(row.get("id", where.rpartition(":")[2]))
        if isinstance(row.get("contents"), str) and row["contents"].strip():
            return Passage.of(id, row["contents"])
        if isinstance(row.get("text"), str) and isinstance(row.get("title"), str):
            return Passage(id, row["title"].strip().strip('"'), row["text"].strip())
    raise UserError(f"passages: {where} has no text; each object needs contents, or title and text.")
