"""Skills by rules about question-answering episodes: true to the episode's text, and good to follow."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.searchqa import SearchEnvironment
from seed_opd.environments.searchqa.expert import SearchingExpert
from seed_opd.hindsight.audit import audit
from seed_opd.hindsight.library import Library
from seed_opd.hindsight.rules.search import facts, named, write
from seed_opd.trajectory import Step, Task, Trajectory

TWO_HOPS, ONE_HOP = "Where was the author of The Iron Winter born?", "Who founded Volmar Mills?"
NOVEL = ("The Iron Winter", "The Iron Winter is a novel written by Maren Colter. The Iron Winter is set in Calford.")
AUTHOR = ("Maren Colter", "Maren Colter was a baker. Maren Colter was born in Torvale.")
OTHER = ("Maren Fenn", "Maren Fenn was born in Torvale.")
FIRM = ("Volmar Mills", "Volmar Mills was founded by Odo Harn. Volmar Mills makes rope.")


def search(query: str, *passages: tuple[str, str]) -> tuple[str, str]:
    told = [f"[{number}] {title}\n{text}" for number, (title, text) in enumerate(passages, 1)]
    return f"<search>{query}</search>", "\n".join(["<information>", *told, "</information>"])


def answer(text: str) -> tuple[str, str]:
    return f"<answer>{text}</answer>", "The answer is given; the episode is over."


def episode(question: str, *turns: tuple[str, str], success: bool = False) -> Trajectory:
    seen = ["No information yet.", *(text for _, text in turns)]
    steps = tuple(
        Step(seen[i], f"<think>so</think>{action}", action, bool(action), 0.0) for i, (action, _) in enumerate(turns)
    )
    task = Task("search", "train", 0)
    return Trajectory(task, question, "two_hop", steps, success, float(success), final_observation=seen[-1])


# ---- after a success


@pytest.mark.parametrize(
    ("turns", "skill"),
    [
        (
            [search("The Iron Winter", NOVEL), search("Maren Colter", AUTHOR, OTHER), answer("Torvale")],
            "first search The Iron Winter and find Maren Colter, next search Maren Colter, then answer Torvale.",
        ),
        (
            [search("Iron Winter author", NOVEL), search("birth of Maren Colter", AUTHOR), answer("Torvale")],
            "first search Iron Winter author and find Maren Colter, next search birth of Maren Colter, then answer Torvale.",
        ),
        (
            [
                search("Torvale"),
                search("The Iron Winter", NOVEL),
                search("The Iron Winter", NOVEL),
                search("Maren Colter", AUTHOR),
                answer("Torvale"),
            ],
            "first search The Iron Winter and find Maren Colter, next search Maren Colter, then answer Torvale.",
        ),
        (
            [
                search("The Iron Winter", NOVEL),
                search("Maren Colter", AUTHOR),
                search("Maren Fenn", OTHER, AUTHOR),
                answer("Torvale"),
            ],
            "first search The Iron Winter and find Maren Colter, next search Maren Colter, then answer Torvale.",
        ),
        (
            [search(TWO_HOPS, NOVEL, AUTHOR), answer("Torvale")],
            "first search The Iron Winter, then answer Torvale.",
        ),
    ],
)
def test_a_success_becomes_the_way_to_the_answer(turns: list[tuple[str, str]], skill: str) -> None:
    written = write(episode(TWO_HOPS, *turns, success=True))
    assert (written.status, written.skill) == ("ok", skill)
    assert written.summary.startswith("Torvale was found by searching ") and written.analyzer == "rules"


def test_a_search_about_something_else_is_not_told_though_its_passages_say_the_answer() -> None:
    turns = [
        search("Volmar Mills", FIRM),
        search("Volmar Works", ("Volmar Works", "It makes soap."), FIRM),
        answer("Odo Harn"),
    ]
    written = write(episode(ONE_HOP, *turns, success=True))
    assert written.skill == "first search Volmar Mills, then answer Odo Harn."
    assert written.steps == ((0, "search Volmar Mills now."), (2, "answer Odo Harn now."))


def test_the_questions_own_words_lead_nowhere() -> None:
    turns = [search("The Iron Winter", ("X", "X was born.")), search("born author", AUTHOR), answer("Torvale")]
    assert write(episode(TWO_HOPS, *turns, success=True)).skill == "first search born author, then answer Torvale."


def test_a_judgement_is_told_with_all_searches() -> None:
    written = write(
        episode("Is A or B older?", search("A", ("A", "old")), search("B", ("B", "new")), answer("yes"), success=True)
    )
    assert written.skill == "first search A, next search B, then answer yes."


@pytest.mark.parametrize("turns", [[answer("Torvale")], [search("The Iron Winter", NOVEL), answer("Torvale")]])
def test_an_answer_that_no_passage_says_gives_no_skill(turns: list[tuple[str, str]]) -> None:
    written = write(episode(TWO_HOPS, *turns, success=True))
    assert (written.status, written.skill) == ("error", "") and "does not show" in written.raw


# ---- after a failure


ORDER = "first search The Iron Winter and find the author, next search that name, then answer from its passage."


@pytest.mark.parametrize(
    ("turns", "steps"),
    [
        (
            [search("The Iron Winter", NOVEL), search("the iron winter", NOVEL), answer("Calford")],
            ((1, "do not search the iron winter now."),),
        ),
        ([search("The Iron Winter", NOVEL), search("The Iron Winter", NOVEL)], ((1, "do not search The Iron Winter now."),)),
        ([search("Calford", NOVEL), answer("Calford")], ((1, "do not answer Calford now."),)),
        ([search(TWO_HOPS, NOVEL), answer("Calford")], ()),
    ],
)
def test_the_step_told_is_that_of_the_mistake(turns: list[tuple[str, str]], steps: tuple[tuple[int, str], ...]) -> None:
    assert write(episode(TWO_HOPS, *turns)).steps == steps


@pytest.mark.parametrize(
    ("turns", "avoid", "mistake"),
    [
        ([answer("Calford")], "do not answer Calford before a search", "not_searched"),
        ([search(TWO_HOPS, NOVEL), answer("Calford")], "do not search the whole question", "whole_question"),
        (
            [search("The Iron Winter", NOVEL), search("the iron winter", NOVEL), answer("Calford")],
            "do not search the iron winter again",
            "repeated",
        ),
        (
            [search("The Iron Winter", NOVEL), search("Maren Colter", AUTHOR), answer("Osthaven.")],
            "do not answer Osthaven, no passage says it",
            "unread",
        ),
        ([search("The Iron Winter", NOVEL), answer("Calford")], "do not answer Calford after one search", "early"),
        (
            [search("The Iron Winter", NOVEL), search("Maren Colter", AUTHOR), answer("baker")],
            "do not answer baker, the question asks for another fact",
            "misread",
        ),
        (
            [search("Iron", NOVEL), search("Maren Colter", AUTHOR), search("Calford"), search("Torvale")],
            "do not end without an answer",
            "unanswered",
        ),
        (
            [search("Iron", NOVEL), ("", "Nothing."), ("look", "Nothing."), ("", "Nothing.")],
            "do not take a turn without one search or one answer",
            "no_action",
        ),
    ],
)
def test_a_failure_becomes_its_mistake_and_the_right_order(turns: list[tuple[str, str]], avoid: str, mistake: str) -> None:
    trajectory = episode(TWO_HOPS, *turns)
    written = write(trajectory)
    assert written.skill == f"{avoid}: {ORDER}" and facts(trajectory).mistake == mistake
    assert written.summary.startswith("the episode failed: ") and written.usable


@pytest.mark.parametrize(
    ("question", "order"),
    [
        (ONE_HOP, "first search Volmar Mills, then answer from its passage."),
        ("Who is the mayor in Norhaven?", "first search Norhaven, then answer from its passage."),
        ("Who is the director of Jaws?", "first search Jaws, then answer from its passage."),
        (
            "What is the place of birth of the director of Jaws?",
            "first search Jaws and find the director, next search that name, then answer from its passage.",
        ),
        (
            "Where was the spouse of the director of Jaws born?",
            "first search Jaws and find the director, next search that name and find the spouse, next search that name, "
            "then answer from its passage.",
        ),
        (
            "when did the eagles win last super bowl",
            "first search eagles win last super bowl, then answer from its passage.",
        ),
        ("who won in 2014", "first search won 2014, then answer from its passage."),
        ("", "first search , then answer from its passage."),
    ],
)
def test_the_order_is_in_the_questions_own_words(question: str, order: str) -> None:
    assert write(episode(question, answer("x"))).skill.partition(": ")[2] == order


def test_long_texts_are_told_in_short() -> None:
    assert len(write(episode(TWO_HOPS, answer("very " * 400))).skill.split()) < 45


# ---- names


def test_the_names_that_a_skill_should_mention_are_in_the_rules_own_skill() -> None:
    won = episode(
        TWO_HOPS, search("The Iron Winter", NOVEL), search("Maren Colter", AUTHOR), answer("Torvale"), success=True
    )
    lost = episode(TWO_HOPS, search("The Iron Winter", NOVEL), answer("Calford"))
    assert named(won) == {
        "query": ["The Iron Winter", "Maren Colter"],
        "found": ["Maren Colter"],
        "answer": ["Torvale"],
    }
    assert named(lost) == {"query": ["The Iron Winter"], "found": ["author"], "answer": ["Calford"]}
    for trajectory in (won, lost):
        assert all(name in write(trajectory).skill for names in named(trajectory).values() for name in names)


# ---- all of it


TURNS = st.one_of(
    st.sampled_from([NOVEL, AUTHOR, FIRM]).map(lambda passage: search(passage[0], passage)),
    st.text(max_size=30).map(lambda text: search(text, (text, text))),
    st.text(max_size=30).map(answer),
    st.tuples(st.text(max_size=30), st.text(max_size=30)),
)


@given(st.one_of(st.sampled_from([TWO_HOPS, ONE_HOP]), st.text(max_size=40)), st.lists(TURNS, max_size=4), st.booleans())
def test_any_episode_can_be_read(question: str, turns: list[tuple[str, str]], success: bool) -> None:
    trajectory = episode(question, *turns, success=success)
    written = write(trajectory)
    assert written.status == ("ok" if written.skill else "error") and isinstance(named(trajectory), dict)
    assert not re.search(r"[{}]", written.skill) or re.search(r"[{}]", str(trajectory.to_json()))


@pytest.fixture(scope="module")
def environment() -> SearchEnvironment:
    return SearchEnvironment(questions="generated")


def play(environment: SearchEnvironment, task: Task, expert: SearchingExpert) -> Trajectory:
    first = environment.reset(task)
    expert.reset(first.goal, first.text)
    turns, done, success = [], False, False
    text = first.text
    while not done:
        action = expert.act(text)
        outcome = environment.step(action)
        text, done, success = outcome.text, outcome.done, outcome.success
        turns.append((action, text))
    return episode(first.goal, *turns, success=success)


def test_workflows_win_when_their_words_are_taken_as_actions(environment: SearchEnvironment) -> None:
    rng = random.Random(0)
    told = 0
    for task in environment.tasks("train")[:200]:
        trajectory = play(environment, task, SearchingExpert(rng, 0.3))
        if not trajectory.success:
            continue
        clauses = re.split(r"(?:, )?(?:first|next|then) ", write(trajectory).skill.rstrip("."))[1:]
        environment.reset(task)
        shown = ""
        for clause in clauses:
            kind, _, rest = clause.partition(" ")
            query, _, found = rest.partition(" and find ")
            outcome = environment.step(f"<{kind}>{query}</{kind}>")
            shown += outcome.text
            assert found in outcome.text
        assert outcome.success and clauses[-1].removeprefix("answer ") in shown
        told += 1
    assert told > 100


def test_skills_about_scripted_play_are_clean_and_of_every_kind(environment: SearchEnvironment) -> None:
    rng = random.Random(1)
    played = [play(environment, task, SearchingExpert(rng, 0.5)) for task in environment.tasks("train")[:300]]
    skills = [write(trajectory) for trajectory in played]
    counts = audit(skills, played).counts
    assert sum(counts.values()) - counts["duplicate"] <= 0.02 * len(skills)
    mistakes = Counter(facts(trajectory).mistake for trajectory in played)
    assert {"not_searched", "whole_question", "repeated", "early", "misread"} <= set(mistakes)


def test_the_library_has_something_for_every_set() -> None:
    library = Library.of("search")
    texts = [library.skill(category) for category in SearchEnvironment.categories]
    assert len(set(texts)) == len(texts) == 9 and all(len(text) < 400 for text in texts)
