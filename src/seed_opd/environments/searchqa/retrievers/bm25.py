"""BM25 over an inverted index in memory, with the libraries bm25s and PyStemmer (the extra `search`)."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence

from seed_opd.environments.ranking import K1, B, best
from seed_opd.environments.searchqa.passages import Corpus
from seed_opd.environments.searchqa.retrievers.base import Hit
from seed_opd.errors import UserError

_WORD = re.compile(r"\w+")


class Bm25Retriever:
    """Lucene's BM25 over English stems of title and text, without stop-words; ties go to the earlier passage.

    Raises UserError where the extra is not installed, or no passage holds a word.
    """

    def __init__(self, corpus: Corpus, /) -> None:
        try:
            import bm25s
            import Stemmer
            from bm25s.stopwords import STOPWORDS_EN
        except ImportError as error:
            raise UserError(
                f"retriever: bm25 needs {error.name}, which is not installed; run: pip install 'seed-opd[search]'."
            ) from error
        self._corpus = corpus
        self._stop_words = frozenset(STOPWORDS_EN)
        self._stemmer = Stemmer.Stemmer("english")
        self._lock = threading.Lock()  # a stemmer is of one thread at a time
        words = [self._stems(passage.contents) for passage in corpus.passages]
        if not any(words):
            raise UserError(f"passages: no passage of {corpus.name} holds a word to index; give passages with text.")
        self._index = bm25s.BM25(k1=K1, b=B, method="lucene")
        self._index.index(words, show_progress=False)

    @property
    def name(self) -> str:
        return f"BM25 over {self.size:,} passages of {self._corpus.name}"

    @property
    def size(self) -> int:
        return len(self._corpus.passages)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"bm25 {K1} {B} {self._corpus.fingerprint}".encode()).hexdigest()

    def search(self, queries: Sequence[str], top: int) -> list[list[Hit]]:
        return [self._best(query, top) for query in queries]

    def _best(self, query: str, top: int) -> list[Hit]:
        vocabulary = self._index.vocab_dict
        words = [vocabulary[stem] for stem in self._stems(query) if stem in vocabulary]
        if not words:
            return []
        scores = self._index.get_scores_from_ids(words)  # (passages,)
        return [Hit(self._corpus.passages[index], float(scores[index])) for index in best(scores, top)]

    def _stems(self, text: str) -> list[str]:
        words = [word for word in _WORD.findall(text.lower()) if word not in self._stop_words]
        with self._lock:
            return self._stemmer.stemWords(words)
