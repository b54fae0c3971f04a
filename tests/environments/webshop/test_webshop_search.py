"""Search: the analysis of texts, and BM25 over them, computed again by hand."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seed_opd.environments.webshop.search import MOST_HITS, Index, analyze, build

TEXTS = [
    "red running shoes",
    "blue shoes for running",
    "a red red shirt",
    "the lamp",
    "shirts with red dots and blue stripes",
]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Women's running shoes", ["women", "run", "shoe"]),
        ("size 7.5, 1,000 pieces; 3.5oz", ["size", "7.5", "1,000", "piec", "3.5oz"]),
        ("don't wash-and-wear u.s.a. a.b", ["don't", "wash", "wear", "u.s.a", "a.b"]),
        ("80% off: 2x3 [sep] café", ["80", "off", "2x3", "sep", "café"]),
        ("to be or not to be", []),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


def by_hand(query: str, texts: list[str]) -> list[int]:
    """Lucene's BM25 with k1 0.9 and b 0.4."""
    documents = [Counter(analyze(text)) for text in texts]
    mean = sum(document.total() for document in documents) / len(documents)

    def score(document: Counter[str], term: str) -> float:
        having = sum(term in other for other in documents)
        idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        return idf * document[term] / (document[term] + 0.9 * (0.6 + 0.4 * document.total() / mean))

    scores = [sum(score(document, term) for term in analyze(query)) for document in documents]
    found = [position for position, value in enumerate(scores) if value > 0]
    return sorted(found, key=lambda position: -round(scores[position], 5))


@pytest.mark.parametrize("query", ["red", "blue shoes", "running shirts", "lamp red red", "the", "unknown", "", "RED shirt"])
def test_hits_are_those_of_the_formula(tmp_path: Path, query: str) -> None:
    build(TEXTS, tmp_path)
    assert list(Index(tmp_path).search(query)) == by_hand(query, TEXTS)


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["blue red oak", "red red lamp", "lamp oak blue lamp", "lamp lamp red red red lamp red", "red"], [2, 0, 3, 1, 4]),
        (
            ["red red lamp oak lamp lamp oak", "red oak blue lamp", "oak lamp red", "blue", "oak lamp oak oak"],
            [1, 0, 3, 2, 4],
        ),
        (
            [
                "oak red lamp blue red",
                "red blue lamp oak red blue",
                "red red oak lamp oak red",
                "red red blue red red lamp lamp",
                "blue red lamp red red blue",
            ],
            [4, 1, 3, 0, 2],
        ),
    ],
)
def test_the_order_is_that_of_these_parameters_and_of_no_others(tmp_path: Path, texts: list[str], order: list[int]) -> None:
    """Another k1 (0.6, 1.2) or b (0.1, 0.75) orders one of these otherwise."""
    build(texts, tmp_path)
    assert list(Index(tmp_path).search("red lamp blue")) == order == by_hand("red lamp blue", texts)


def test_there_are_at_most_50_hits_and_equal_ones_keep_their_order(tmp_path: Path) -> None:
    build(["lamp"] * 70 + ["lamp lamp"] * 5, tmp_path)
    assert Index(tmp_path).search("lamp") == (*range(70, 75), *range(45)) and MOST_HITS == 50


@given(st.lists(st.text("ab 'é.1", max_size=12), min_size=1, max_size=6), st.text("ab 'é.1", max_size=8))
@settings(deadline=None)
def test_any_texts_and_any_query_are_taken(tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str) -> None:
    folder, texts = tmp_path_factory.mktemp("index"), [*texts, "lamp"]
    build(texts, folder)
    hits = Index(folder).search(query)
    wanted = set(analyze(query))
    assert set(hits) == {position for position, text in enumerate(texts) if wanted & set(analyze(text))}
