"""The generated encyclopaedia: pinned, answerable, apart by split, won by the expert."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from seed_opd.environments.searchqa import SearchEnvironment
from seed_opd.environments.searchqa.encyclopaedia import PACKAGED, generate, generate_stream, packaged, packaged_questions
from seed_opd.environments.searchqa.expert import SearchingExpert, understand
from seed_opd.environments.searchqa.questions import Question
from seed_opd.environments.searchqa.relations import RELATIONS, ask, is_unseen, one_hop, two_hop
from seed_opd.environments.searchqa.retrievers.base import Retriever
from seed_opd.environments.searchqa.retrievers.bm25 import Bm25Retriever
from seed_opd.errors import UserError


@pytest.fixture(scope="module")
def environment() -> SearchEnvironment:
    return SearchEnvironment(questions="generated")


def play(
    environment: SearchEnvironment, question: Question, expert: SearchingExpert, retriever: Retriever | None = None
) -> tuple[bool, list[str]]:
    first = environment.start(question, retriever)
    expert.reset(first.goal, first.text)
    text, actions = first.text, []
    while True:
        actions.append(expert.act(text))
        assert 2 <= len(expert.thought.split()) <= 6
        outcome = environment.step(actions[-1])
        if outcome.done:
            return outcome.success, actions
        text = outcome.text


# ---- the encyclopaedia


def test_the_packaged_encyclopaedia_is_pinned(environment: SearchEnvironment) -> None:
    """Results are compared under this fingerprint; whoever changes the generator changes it here."""
    assert environment.data.fingerprint.startswith("396e217d58c54bca")
    assert packaged().corpus().fingerprint.startswith("04b085e1e129654a")
    assert packaged().corpus().fingerprint == generate("2026").corpus().fingerprint


def test_every_fact_is_said_once_in_the_passage_of_its_entry() -> None:
    book = generate("test")
    texts = {passage.title: passage.text for passage in book.corpus().passages}
    assert len(texts) == sum(map(len, book.entries.values()))
    for relation in RELATIONS:
        for name in book.entries[relation.subject]:
            assert texts[name].count(relation.sentence.format(s=name, o=book.facts[relation.name, name])) == 1


def test_splits_are_balanced_and_do_not_overlap() -> None:
    asked = {}
    for split in PACKAGED:
        questions = packaged_questions(split)
        assert Counter(question.set for question in questions) == dict.fromkeys(("one_hop", "two_hop"), PACKAGED[split])
        asked[split] = {understand(question.text) for question in questions}
        assert len(asked[split]) == len(questions)
    assert not {wish.name for wish in asked["train"]} & {wish.name for wish in asked["valid_seen"]}
    trained = {wish.chain for wish in asked["train"]}
    assert not trained & {wish.chain for wish in asked["valid_unseen"]}
    assert {wish.chain for wish in asked["valid_seen"]} <= {
        chain for chain in (*one_hop(), *two_hop()) if not is_unseen(chain)
    }
    single = {relation for chain in trained for relation in chain}
    for wish in asked["valid_unseen"]:
        assert wish.chain[0].subject == "monument" or set(wish.chain) <= single, "each relation alone is known from training"


def test_the_stream_poses_only_what_training_poses_and_is_seeded() -> None:
    stream = [question for _, question in islice(generate_stream(3), 200)]
    assert not any(is_unseen(understand(question.text).chain) for question in stream)
    assert stream == [question for _, question in islice(generate_stream(3), 200)]
    assert stream[:9] != [question for _, question in islice(generate_stream(4), 9)]
    assert Counter(question.set for question in stream) == {"one_hop": 100, "two_hop": 100}


# ---- the expert


@pytest.mark.parametrize("chain", [*one_hop(), *two_hop()], ids=lambda chain: "-".join(r.name for r in chain))
def test_every_wording_is_understood(chain: tuple) -> None:
    for wording in range(2):
        assert understand(ask(chain, "Some Name", wording)) == (understand(ask(chain, "Some Name", 0)))
        assert (understand(ask(chain, "Some Name", wording)).chain, understand(ask(chain, "Some Name", 1)).name) == (
            chain,
            "Some Name",
        )


@pytest.mark.parametrize("question", ["", "Who?", "Who wrote", "When was the colour of X born?", "who wrote x?"])
def test_other_questions_are_refused(question: str) -> None:
    with pytest.raises(UserError, match="not one of the generated ones"):
        understand(question)


@pytest.mark.parametrize("split", PACKAGED)
def test_the_expert_answers_at_least_nine_in_ten(environment: SearchEnvironment, split: str) -> None:
    questions = environment.data.questions(split)[:120]
    assert sum(play(environment, question, SearchingExpert())[0] for question in questions) >= 0.9 * len(questions)


def test_the_expert_answers_the_stream_over_its_own_passages(environment: SearchEnvironment) -> None:
    won, retrievers = 0, {}
    for book, question in islice(generate_stream(5), 96):
        if book.seed not in retrievers:
            retrievers[book.seed] = Bm25Retriever(book.corpus())
        won += play(environment, question, SearchingExpert(), retrievers[book.seed])[0]
    assert won >= 0.9 * 96


def test_the_expert_reads_only_what_it_is_shown(environment: SearchEnvironment) -> None:
    expert = SearchingExpert()
    expert.reset("Who wrote The Golden Bell?")
    assert expert.act("No information yet.") == "<search>The Golden Bell</search>"
    told = "<information>\n[1] The Golden Bell\nThe Golden Bell is a novel written by Nobody Known. More.\n</information>"
    assert expert.act(told) == "<answer>Nobody Known</answer>" and expert.thought == "the author is Nobody Known"


def test_the_expert_says_so_when_it_finds_nothing(environment: SearchEnvironment) -> None:
    expert = SearchingExpert()
    expert.reset("Who wrote The Golden Bell?")
    actions = [expert.act("<information>\nNo passage matches this query.\n</information>") for _ in range(4)]
    assert actions[1] == "<search>The Golden Bell author</search>" and actions[-1] == "<answer>unknown</answer>"


def test_mistakes_cost_success_and_need_random_numbers(environment: SearchEnvironment) -> None:
    questions = environment.data.questions("train")[:150]
    wins = []
    for mistakes in (0.0, 0.3, 0.9):
        rng = random.Random(0)
        wins.append(sum(play(environment, question, SearchingExpert(rng, mistakes))[0] for question in questions))
    assert wins[0] > wins[1] > wins[2] > 0
    again = [play(environment, question, SearchingExpert(random.Random(1), 0.5)) for question in questions[:9]]
    assert again == [play(environment, question, SearchingExpert(random.Random(1), 0.5)) for question in questions[:9]]
    with pytest.raises(UserError, match="rng"):
        SearchingExpert(mistakes=0.1)


def test_nothing_but_mistakes_wins_nothing_and_looks_elsewhere(environment: SearchEnvironment) -> None:
    rng, wins, elsewhere = random.Random(2), 0, 0
    for question in environment.data.questions("train")[:200]:
        expert = SearchingExpert(rng, 1.0)
        first = environment.start(question)
        expert.reset(first.goal, first.text)
        text, done = first.text, False
        while not done:
            action = expert.act(text)
            if expert.thought == "look at another":
                elsewhere += 1
                assert understand(question.text).name not in action
            outcome = environment.step(action)
            text, done = outcome.text, outcome.done
        wins += outcome.success
    assert wins <= 2 and elsewhere > 20  # another fact can be the same as the answer
