"""Speed of Search-QA: building the BM25 index, queries a second on one core, steps a second of whole episodes.

    OMP_NUM_THREADS=1 python benchmarks/search.py [--dense MODEL] [--passages N]

Passages and questions are the originals where SEED_OPD_DATA leads to them, else those of the package. Times are CPU seconds
of one process. With --dense, a sentence-transformers model is measured on the first N passages, beside BM25 on the same.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from measuring import table

from seed_opd.environments.searchqa import SearchEnvironment
from seed_opd.environments.searchqa.answers import normalise
from seed_opd.environments.searchqa.data import Data, open_data
from seed_opd.environments.searchqa.passages import Corpus
from seed_opd.environments.searchqa.questions import Question
from seed_opd.environments.searchqa.retrievers.base import Retriever
from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever
from seed_opd.environments.searchqa.retrievers.dense import DenseRetriever

TOP = 3
QUERIES = 4000
EPISODES = 1000


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def answered(retriever: Retriever, questions: Sequence[Question]) -> float:
    """Share of the questions with an answer in the top passages, when the question itself is searched."""

    def found(question: Question) -> bool:
        (hits,) = retriever.search([question.text], TOP)
        texts = [f" {normalise(hit.passage.contents)} " for hit in hits]
        return any(f" {normalise(answer)} " in text for answer in question.answers for text in texts)

    return sum(map(found, questions)) / len(questions)


def measure(name: str, build: Callable[[], Retriever], questions: Sequence[Question], queries: int) -> list[str]:
    """One row of the table: queries are asked one by one, as episodes ask them."""
    made: list[Retriever] = []
    building = seconds(lambda: made.append(build()))
    (retriever,) = made
    texts = [questions[number % len(questions)].text for number in range(queries)]
    asking = seconds(lambda: [retriever.search([text], TOP) for text in texts])
    share = f"{answered(retriever, questions):.1%} of {len(questions)}"
    return [name, f"{retriever.size:,}", f"{building:.2f}", f"{queries / asking:,.0f}", share]


def steps_per_second(data: Data) -> float:
    """Episodes of three searches for the question and an answer."""
    environment = SearchEnvironment(data.source if Path(data.source).exists() else "generated")
    tasks = environment.tasks(data.splits[0])

    def play() -> None:
        for number in range(EPISODES):
            goal = environment.reset(tasks[number % len(tasks)]).goal
            for _ in range(3):
                environment.step(environment.parse(f"<think>find it</think><search>{goal}</search>").text)
            environment.step(environment.parse("<think>so</think><answer>unknown</answer>").text)

    return 4 * EPISODES / seconds(play)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dense", metavar="MODEL", help="folder of a sentence-transformers model")
    parser.add_argument("--passages", type=int, default=1000, help="how many passages the dense model embeds")
    args = parser.parse_args()
    data = open_data()
    corpus, questions = data.corpus(), data.questions("qa" if "qa" in data.splits else "valid_seen")
    rows = [measure("BM25", lambda: Bm25Retriever(corpus), questions, QUERIES)]
    if args.dense:
        part = Corpus(corpus.name, corpus.passages[: args.passages])
        rows.append(measure("BM25", lambda: Bm25Retriever(part), questions, QUERIES))
        with tempfile.TemporaryDirectory() as folder:
            build = lambda: DenseRetriever(part, args.dense, cache=Path(folder))  # noqa: E731
            rows.append(measure("dense", build, questions, 200))
    table(["retriever", "passages", "build, s", "queries/s", "answer in the top 3"], rows)
    print(f"environment steps/s, three of four of them searches: {steps_per_second(data):,.0f}")


if __name__ == "__main__":
    main()
