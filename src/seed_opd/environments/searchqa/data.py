"""Where questions and passages lie: in a folder of files, or in the generated encyclopaedia of the package.

A folder has question files, each a split named by its stem ("train.parquet" is `train`), and the passages in `corpus.jsonl`.
Splits are put together by "+": `NQ-open.dev+r1searcher_bamboogle` is one panel over two sets.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from seed_opd.environments.searchqa.encyclopaedia import PACKAGED, packaged, packaged_questions
from seed_opd.environments.searchqa.passages import Corpus, read_corpus
from seed_opd.environments.searchqa.questions import ENDINGS, Question, read_questions
from seed_opd.environments.storage import DATA, original_folder
from seed_opd.errors import UserError

CORPUS = "corpus.jsonl"
ORIGINALS = "searchqa"
"""Their folder under SEED_OPD_DATA."""
ALIASES = {"seen": "valid_seen", "unseen": "valid_unseen"}


class Data(ABC):
    """Questions by split, and the passages that they are answered from."""

    source: str

    @cached_property
    @abstractmethod
    def splits(self) -> tuple[str, ...]: ...

    @abstractmethod
    def corpus(self) -> Corpus:
        """The passages; raises UserError where there are none."""

    def check_corpus(self) -> None:
        """Raises UserError where there are no passages; reads none."""
        return None

    @cached_property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all questions."""

    @abstractmethod
    def _read(self, split: str) -> tuple[Question, ...]: ...

    def questions(self, split: str) -> tuple[Question, ...]:
        """The questions of a split, or of several joined by "+"; raises UserError, naming the splits, for an unknown one."""
        return _joined(self, split)

    def _part(self, split: str) -> tuple[Question, ...]:
        split = ALIASES.get(split, split) if split not in self.splits else split
        if split not in self.splits:
            raise UserError(f"split: {split!r} is not in {self.source}; choose one of {', '.join(self.splits)}.")
        return self._read(split)


class GeneratedData(Data):
    """The encyclopaedia of the package."""

    source = "the generated encyclopaedia"
    splits = tuple(PACKAGED)

    def corpus(self) -> Corpus:
        return packaged().corpus()

    @cached_property
    def fingerprint(self) -> str:
        rows = [f"{split}\n{question}\n" for split in self.splits for question in self._read(split)]
        return hashlib.sha256("".join(rows).encode()).hexdigest()

    def _read(self, split: str) -> tuple[Question, ...]:
        return packaged_questions(split)


class FolderData(Data):
    """Question files in a folder, or a single one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = str(path)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._files)

    def corpus(self) -> Corpus:
        self.check_corpus()
        return read_corpus(self.path / CORPUS)

    def check_corpus(self) -> None:
        if not self.path.is_dir():
            raise UserError(
                f"retriever.passages: {self.path} is a single file; give the passages, or a retriever with a url."
            )
        if not (self.path / CORPUS).is_file():
            raise UserError(
                f"retriever.passages: {self.path / CORPUS} is missing; put the passages there, or give a url to ask."
            )

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for split, file in self._files.items():
            digest.update(f"{split} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()

    def _read(self, split: str) -> tuple[Question, ...]:
        return _questions(self._files[split])

    @cached_property
    def _files(self) -> dict[str, Path]:
        files = dict(self._found())
        if not files:
            raise UserError(f"questions: there is no question file ({', '.join(ENDINGS)}) in {self.path}.")
        return files

    def _found(self) -> Iterator[tuple[str, Path]]:
        for file in sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]:
            if file.suffix in ENDINGS and "corpus" not in file.stem:
                yield file.stem, file


def open_data(questions: str | None = None) -> Data:
    """The data for an option `questions`: "original", "generated", a path, or None for the originals where they are there.

    Raises UserError, with where it looked, if there is nothing.
    """
    if questions == "generated":
        return _generated()
    if questions not in (None, "original"):
        path = Path(questions).expanduser()
        if not path.exists():
            raise UserError(
                f"environment.options.questions: {questions!r} does not exist; give a folder with question files, or a file."
            )
        return _folder(path.resolve())
    folder = original_folder(ORIGINALS)
    if folder and folder.is_dir():
        return _folder(folder)
    if questions is None:
        return _generated()
    looked = folder or f"nowhere, as {DATA} is not set"
    raise UserError(
        f"environment.options.questions: there are no originals (looked: {looked}); set {DATA} to the folder with searchqa/ "
        "in it, or use questions: generated."
    )


def report() -> Iterator[str]:
    """Sentences about the data: what is in the package, and what was found of the originals."""
    yield _contents("Packaged questions", _generated())
    folder = original_folder(ORIGINALS)
    if folder is None:
        yield f"Original questions: {DATA} is not set, so they were not looked for; set it to the folder to keep data in."
    elif folder.is_dir():
        yield _contents("Original questions", _folder(folder))
    else:
        yield f"Original questions: {folder} does not exist; put question files and {CORPUS} there (docs/environments.md)."


def _contents(what: str, data: Data) -> str:
    splits = ", ".join(f"{len(data.questions(split)):,} {split}" for split in data.splits)
    passages, fingerprint = f"{len(data.corpus().passages):,} passages", data.fingerprint[:16]
    return f"{what}: {splits}, with {passages}, in {data.source} (fingerprint {fingerprint})."


@cache
def _joined(data: Data, split: str) -> tuple[Question, ...]:
    """Kept, as every reset asks for a question by its place among maybe 170,000."""
    return tuple(question for part in split.split("+") for question in data._part(part))


@cache
def _generated() -> GeneratedData:
    return GeneratedData()


@cache
def _folder(path: Path) -> FolderData:
    return FolderData(path)


@cache
def _questions(path: Path) -> tuple[Question, ...]:
    return read_questions(path)
