"""Dense retrieval: sentence embeddings of any local sentence-transformers model (the extra `dense`), kept on disk.

Search is exact, or by faiss's HNSW graph where that is asked for. E5 models want the prefixes "query: " and "passage: ".
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seed_opd.environments.searchqa.passages import Corpus
from seed_opd.environments.searchqa.retrievers.base import Hit
from seed_opd.environments.storage import cache_folder, made_once
from seed_opd.errors import UserError

LONGEST = 256
"""Tokens of a passage or a query that are read (e5-base-v2 in Search-R1)."""

NEIGHBOURS = 32  # links of a passage in the HNSW graph, faiss's default


class DenseRetriever:
    """Passages by the cosine of embeddings, which are computed once and kept in `cache`, by default the user's cache folder.

    Raises UserError where the extra is not installed or the model cannot be read.
    """

    def __init__(
        self,
        corpus: Corpus,
        /,
        model: str,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        faiss: bool = False,
        cache: Path | None = None,
        batch: int = 64,
    ) -> None:
        self._corpus = corpus
        self._model_path = model
        self._prefix = query_prefix
        self._batch = batch
        self._lock = threading.Lock()  # a model is of one thread at a time
        self._model = _load(model)
        identity = f"{_hash_of(model)} {query_prefix!r} {passage_prefix!r} {LONGEST} {corpus.fingerprint}"
        self._identity = hashlib.sha256(identity.encode()).hexdigest()
        file = (cache or cache_folder()) / f"embeddings-{self._identity[:16]}.npy"
        what = f"retriever: the embeddings of {self.size:,} passages"
        made_once(file, what, partial(self._embed, passage_prefix), lambda path: _is_whole(path, self.size))
        self._matrix = np.load(file, allow_pickle=False, mmap_mode="r")  # (passages, dimensions)
        self._graph = _graph(self._matrix) if faiss else None

    @property
    def name(self) -> str:
        how = "HNSW" if self._graph is not None else "exact"
        return f"dense ({self._model_path}, {how}) over {self.size:,} passages of {self._corpus.name}"

    @property
    def size(self) -> int:
        return len(self._corpus.passages)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"dense {self._identity} {self._graph is not None}".encode()).hexdigest()

    def search(self, queries: Sequence[str], top: int) -> list[list[Hit]]:
        if not queries:
            return []
        vectors = self._encode([self._prefix + query for query in queries])  # (queries, dimensions)
        count = min(top, self.size)
        if self._graph is not None:
            scores, indices = self._graph.search(vectors, count)
            return [self._hits(*row) for row in zip(indices, scores, strict=True)]
        return [self._best(row, count) for row in vectors @ self._matrix.T]

    def _best(self, scores: np.ndarray, count: int) -> list[Hit]:
        found = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
        best = found[np.argsort(-scores[found], kind="stable")][:count]
        return self._hits(best, scores[best])

    def _hits(self, indices: np.ndarray, scores: np.ndarray) -> list[Hit]:
        pairs = zip(indices, scores, strict=True)
        return [Hit(self._corpus.passages[index], float(score)) for index, score in pairs if index >= 0]

    def _embed(self, prefix: str, file: Path) -> None:
        texts = [f"{prefix}{passage.title}\n{passage.text}" for passage in self._corpus.passages]
        np.save(file, self._encode(texts), allow_pickle=False)

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            return self._model.encode(
                list(texts), batch_size=self._batch, normalize_embeddings=True, show_progress_bar=False
            ).astype(np.float32)


def _is_whole(file: Path, size: int) -> bool:
    """Whether embeddings of so many passages are on the disk."""
    try:
        return file.exists() and len(np.load(file, allow_pickle=False, mmap_mode="r")) == size
    except (OSError, ValueError):
        return False


def _load(model: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UserError(
            f"retriever: dense needs {error.name}, which is not installed; run: pip install 'seed-opd[dense]'."
        ) from error
    if not Path(model).is_dir():
        raise UserError(f"retriever.model: {model!r} is no folder; give a local sentence-transformers model.")
    try:
        loaded = SentenceTransformer(model, device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise UserError(
            f"retriever.model: {model!r} cannot be loaded ({error}); give a sentence-transformers model."
        ) from error
    loaded.max_seq_length = LONGEST
    return loaded


def _hash_of(model: str) -> str:
    """A hash of a model's files."""
    digest = hashlib.sha256()
    for file in sorted(
        path for path in Path(model).rglob("*") if path.is_file() and path.suffix in (".safetensors", ".json")
    ):
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _graph(matrix: np.ndarray) -> Any:
    try:
        import faiss
    except ImportError as error:
        raise UserError("retriever.faiss: faiss is not installed; run: pip install faiss-cpu, or leave it out.") from error
    graph = faiss.IndexHNSWFlat(matrix.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.add(np.ascontiguousarray(matrix))
    return graph
