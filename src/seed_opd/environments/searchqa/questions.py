"""Questions from the rows of seven published sets, whatever the names of their fields.

Search-R1: `question`, `golden_answers`, `data_source` (also `reward_model.ground_truth.target`). NQ-open: `answer`, a
list. TriviaQA: `answer`, an object with `value` and `aliases`. PopQA: `possible_answers`, a JSON list in a string. MuSiQue:
`answer` and `answer_aliases`. HotpotQA, 2WikiMultihopQA, Bamboogle, R1-Searcher: `answer`, a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_opd.errors import UserError

SETS = {
    "nq": ("nq", "natural_questions"),
    "triviaqa": ("triviaqa", "trivia"),
    "popqa": ("popqa",),
    "hotpotqa": ("hotpotqa", "hotpot"),
    "2wikimultihopqa": ("2wikimultihopqa", "2wiki"),
    "musique": ("musique",),
    "bamboogle": ("bamboogle",),
}
"""Each set's name, as Search-R1 writes it, and how it can be recognised in a row's `data_source` or a file's name."""

ENDINGS = (".json", ".jsonl", ".parquet")
_ANSWER_FIELDS = ("golden_answers", "possible_answers", "answers", "answer", "ground_truth")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, every answer that counts, and the set that it is reported in."""

    text: str
    answers: tuple[str, ...]
    set: str


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a .json, .jsonl or .parquet file; raises UserError, with the row, for what is missing or broken."""
    questions = tuple(question_of(f"{path}, row {number}", row, path.stem) for number, row in enumerate(_rows(path), 1))
    if not questions:
        raise UserError(f"questions: {path} holds no rows; give a file with at least one question.")
    return questions


def question_of(where: str, row: Any, file: str = "") -> Question:
    """The question of one row; `file` names the set where the row does not. Raises UserError that names `where`."""
    if not isinstance(row, Mapping):
        raise UserError(f"questions: {where} is not an object; each row needs a question and its answers.")
    fields = {str(name).lower(): value for name, value in row.items()}
    text = fields.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"questions: {where} has no question; add the field question to that row, or remove it.")
    answers = tuple(dict.fromkeys(answer for answer in _answers(fields) if answer.strip()))
    if not answers:
        fields_known = ", ".join(_ANSWER_FIELDS)
        raise UserError(f"questions: {where} has no answers; add one of {fields_known} to that row, or remove it.")
    return Question(" ".join(text.split()), answers, _set(where, fields.get("data_source"), file))


def _answers(fields: Mapping[str, Any]) -> Iterator[str]:
    reward = fields.get("reward_model")
    candidates = [fields.get(name) for name in _ANSWER_FIELDS]
    if isinstance(reward, Mapping):
        candidates.append(reward.get("ground_truth"))
    for value in candidates:
        found = list(_texts(value))
        if found:
            yield from found
            break
    yield from _texts(fields.get("answer_aliases"))


def _texts(value: Any) -> Iterator[str]:
    """The texts in an answer of any published shape."""
    if isinstance(value, str):
        yield from _listed(value)
    elif isinstance(value, bool | int | float):
        yield str(value)
    elif isinstance(value, Mapping):
        for name in ("value", "target", "text", "aliases", "normalized_aliases"):
            yield from _texts(value.get(name))
    elif hasattr(value, "__iter__"):  # lists, and arrays from parquet
        for item in value:
            yield from _texts(item)


def _listed(text: str) -> list[str]:
    """PopQA writes a JSON list into a string."""
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            return [text]
        if isinstance(found, list):
            return [str(item) for item in found]
    return [text]


def _set(where: str, named: Any, file: str) -> str:
    for text in (named, file):
        plain = text.lower().replace("-", "_") if isinstance(text, str) else ""
        for name, marks in SETS.items():
            if any(plain == mark or plain.startswith(f"{mark}_") or f"_{mark}" in plain for mark in marks):
                return name
    known = ", ".join(SETS)
    raise UserError(f"questions: {where} is of no known set; add data_source ({known}), or name the file after its set.")


def _rows(path: Path) -> Iterator[Any]:
    try:
        if path.suffix == ".parquet":
            yield from _parquet_rows(path)
        elif path.suffix == ".json":
            rows = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(rows, list):
                raise UserError(f"questions: {path} is not a list; give a JSON list of rows, or one row a line as .jsonl.")
            yield from rows
        else:
            yield from _lines(path)
    except (OSError, ValueError) as error:  # a JSON or a decoding error is a ValueError
        raise UserError(f"questions: {path} cannot be read ({error}); give a whole {', '.join(ENDINGS)} file.") from error


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise UserError(
                        f"questions: {path}:{number} is not JSON ({error}); mend or remove that line."
                    ) from error


def _parquet_rows(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(f"questions: {path} needs pyarrow; install it with: pip install 'seed-opd[search]'.") from error
    with path.open("rb") as stream:
        for batch in parquet.ParquetFile(stream).iter_batches():
            yield from batch.to_pylist()
