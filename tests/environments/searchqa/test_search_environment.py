"""The episode: turns, reward, replay, isolation; the questions and passages where the originals are."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from seed_opd.environments import make
from seed_opd.environments.base import Outcome
from seed_opd.environments.searchqa import SearchEnvironment, prompts
from seed_opd.environments.searchqa.answers import normalise
from seed_opd.environments.searchqa.passages import Corpus, Passage
from seed_opd.environments.searchqa.questions import Question
from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever
from seed_opd.errors import UserError
from seed_opd.trajectory import Task

QUESTION = Question("Where was Mira born?", ("Torvale", "Torvale Town"), "one_hop")


@pytest.fixture(scope="module")
def environment() -> SearchEnvironment:
    return SearchEnvironment(questions="generated")


def test_tasks_are_counted_in_the_sets_that_they_are_of(environment: SearchEnvironment) -> None:
    tasks = environment.tasks("valid_seen")
    assert tasks[3] == Task("search", "valid_seen", 3) and tasks == make("search", questions="generated").tasks("valid_seen")
    assert {environment.category(task) for task in tasks} == {"one_hop", "two_hop"} <= set(environment.categories)
    with pytest.raises(UserError, match="has 120 questions"):
        environment.reset(Task("search", "valid_seen", 120))
    with pytest.raises(UserError, match="train, valid_seen, valid_unseen"):
        environment.tasks("test")


def test_a_right_answer_is_rewarded_and_ends_the_episode(environment: SearchEnvironment) -> None:
    first = environment.start(QUESTION)
    assert (first.goal, first.text, first.actions) == (QUESTION.text, prompts.FIRST, None)
    end = environment.step("<answer>the TORVALE town.</answer>")
    assert (end.reward, end.done, end.success, end.score) == (1.0, True, True, 1.0)
    after = environment.step("<answer>Torvale</answer>")
    assert (after.text, after.reward, after.done, after.success) == (prompts.OVER, 0.0, True, True)


def test_a_wrong_answer_ends_the_episode_without_a_second_try(environment: SearchEnvironment) -> None:
    environment.start(QUESTION)
    assert environment.step("<answer>Torvale in Brannmark</answer>") == Outcome(prompts.ANSWERED, 0.0, True, False, 0.0)
    assert environment.step("<answer>Torvale</answer>") == Outcome(prompts.OVER, 0.0, True, False, 0.0)


@pytest.mark.parametrize("last", ["<search>Torvale</search>", "Torvale", "", "<search>a</search><answer>Torvale</answer>"])
def test_the_fourth_turn_ends_the_episode_whatever_it_is(environment: SearchEnvironment, last: str) -> None:
    environment.start(QUESTION)
    turns = [
        environment.step(action) for action in ("<search>Torvale</search>", "look around", "<search>Mira</search>", last)
    ]
    assert [turn.done for turn in turns] == [False, False, False, True]
    assert turns[1].text == prompts.INVALID and not any(turn.reward or turn.success for turn in turns)
    environment.start(QUESTION)
    assert not environment.step("<search>Torvale</search>").done


def test_the_fourth_turn_can_answer(environment: SearchEnvironment) -> None:
    environment.start(QUESTION)
    for _ in range(3):
        environment.step("<search>Torvale</search>")
    assert environment.step("<answer>Torvale</answer>").reward == 1.0


def test_a_search_shows_the_top_passages(environment: SearchEnvironment) -> None:
    environment.start(QUESTION)
    text = environment.step("<search>Kestrel</search>").text
    assert text.startswith("<information>\n[1] ") and text.count("\n[") == 3 and "[4]" not in text
    assert prompts.NOT_FOUND in environment.step("<search>zzz</search>").text
    few = SearchEnvironment(questions="generated", passages=1)
    few.start(QUESTION)
    assert few.step("<search>Kestrel</search>").text.count("\n[") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"passages": 0}, "options.passages: 0"),
        ({"passages": "3"}, "options.passages: '3'"),
        ({"passage_characters": None}, "options.passage_characters: None"),
        ({"retriever": 3}, "options.retriever: 3"),
    ],
)
def test_wrong_options_are_named(options: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        SearchEnvironment(questions="generated", **options)


def play(environment: SearchEnvironment, task: Task) -> list[Outcome]:
    rng = random.Random(str(task))
    environment.reset(task)
    actions = ["<search>Mira Kestrel</search>", "<search>town</search>", "<answer>x</answer>", "nothing"]
    return [environment.step(rng.choice(actions)) for _ in range(5)]


def test_an_episode_is_replayed_and_environments_do_not_see_each_other(environment: SearchEnvironment) -> None:
    tasks = environment.tasks("train")[:6]
    alone = [play(environment, task) for task in tasks]
    others = [SearchEnvironment(questions="generated") for _ in tasks]
    assert all(other.retriever is environment.retriever for other in others)
    assert [play(other, task) for other, task in zip(others, tasks, strict=True)] == alone


def test_an_episode_can_have_passages_of_its_own(environment: SearchEnvironment) -> None:
    own = Bm25Retriever(Corpus("mine", [Passage("1", "Mira", "Mira was born in Torvale.")]))
    environment.start(QUESTION, own)
    assert environment.step("<search>Mira</search>").text.count("\n[") == 1
    environment.reset(environment.tasks("train")[0])
    assert environment.step("<search>Mira</search>").text.count("\n[") == 3


def test_a_step_needs_an_episode() -> None:
    with pytest.raises(UserError, match="reset"):
        SearchEnvironment(questions="generated").step("<search>a</search>")


def test_the_fingerprint_is_of_questions_passages_and_settings(environment: SearchEnvironment) -> None:
    assert environment.fingerprint == SearchEnvironment(questions="generated").fingerprint
    assert environment.fingerprint != SearchEnvironment(questions="generated", passages=2).fingerprint


# ---- BM25


def test_bm25_ranks_by_rare_words_stems_and_order() -> None:
    texts = ["boats and rivers", "a river boat", "the boats of rivers", "nothing here", "sailing, a boat"]
    found = Bm25Retriever(Corpus("mine", [Passage(str(n), "", text) for n, text in enumerate(texts)]))
    assert [hit.passage.id for hit in found.search(["boat river"], 5)[0]] == ["0", "1", "2", "4"]
    assert [hit.passage.id for hit in found.search(["the Rivers"], 2)[0]] == ["0", "1"]
    assert found.search(["sail", "the", "", "absent"], 9)[1:] == [[], [], []]
    assert found.search([], 3) == []


def test_bm25_is_the_formula() -> None:
    """Two passages of two words and one of four; "rare" occurs in one: idf = ln(1 + 2.5/1.5), k1 = 0.9, b = 0.4."""
    texts = ["rare word", "word word", "word other thing more"]
    (hit,) = Bm25Retriever(Corpus("mine", [Passage(str(n), "", text) for n, text in enumerate(texts)])).search(["rare"], 3)[
        0
    ]
    length = 2 / (8 / 3)
    assert hit.score == pytest.approx(0.980829 / (1 + 0.9 * (1 - 0.4 + 0.4 * length)), rel=1e-4)


# ---- originals


@pytest.fixture(scope="module")
def originals() -> SearchEnvironment:
    if not Path(os.environ.get("SEED_OPD_DATA", ""), "searchqa", "corpus.jsonl").exists() or not os.environ.get(
        "SEED_OPD_DATA"
    ):
        pytest.skip("the original questions and passages are not here; set SEED_OPD_DATA")
    return SearchEnvironment(questions="original")


def test_the_answer_stands_in_the_top_three_for_two_fifths_of_the_recorded_questions(originals: SearchEnvironment) -> None:
    questions = originals.data.questions("qa")
    assert len(questions) == 200
    hits = originals.retriever.search([question.text for question in questions], 3)

    def answered(question: Question, contents: list[str]) -> bool:
        return any(f" {normalise(answer)} " in f" {normalise(text)} " for answer in question.answers for text in contents)

    found = [answered(q, [hit.passage.contents for hit in own]) for q, own in zip(questions, hits, strict=True)]
    assert sum(found) >= 80


def test_every_original_set_is_read_and_counted(originals: SearchEnvironment) -> None:
    sizes = {split: len(originals.tasks(split)) for split in originals.data.splits}
    assert sizes["NQ-open.dev"] == 3610 and sizes["r1searcher_bamboogle"] == 125
    panel = "+".join(originals.data.splits)
    categories = {originals.category(task) for task in originals.tasks(panel)}
    assert categories == {"nq", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"}
