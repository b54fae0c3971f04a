"""Rows of the seven sets in their published shapes; files in three formats; one sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from seed_opd.environments.searchqa.data import open_data, report
from seed_opd.environments.searchqa.questions import Question, question_of, read_questions
from seed_opd.errors import UserError

SEARCH_R1 = {
    "id": "test_0",
    "question": "who got it?",
    "golden_answers": ["Röntgen", "W. Röntgen"],
    "data_source": "nq",
    "prompt": [{"role": "user", "content": "..."}],
    "reward_model": {"ground_truth": {"target": ["Röntgen", "W. Röntgen"]}, "style": "rule"},
}


@pytest.mark.parametrize(
    ("row", "file", "question"),
    [
        (SEARCH_R1, "test", Question("who got it?", ("Röntgen", "W. Röntgen"), "nq")),
        (
            {"question": "q?", "data_source": "hotpotqa", "reward_model": {"ground_truth": {"target": ["yes"]}}},
            "test",
            Question("q?", ("yes",), "hotpotqa"),
        ),
        ({"question": "q", "answer": ["one", "one season"]}, "NQ-open.dev", Question("q", ("one", "one season"), "nq")),
        (
            {"question": "q?", "answer": {"value": "Sunset", "aliases": ["Sunset", "Sunset Blvd"], "type": "x"}},
            "triviaqa-dev",
            Question("q?", ("Sunset", "Sunset Blvd"), "triviaqa"),
        ),
        (
            {"question": "q?", "possible_answers": '["politician", "political leader"]', "obj": "politician"},
            "popQA",
            Question("q?", ("politician", "political leader"), "popqa"),
        ),
        (
            {"_id": "5a", "question": "q?", "answer": "yes", "type": "bridge"},
            "hotpot_dev",
            Question("q?", ("yes",), "hotpotqa"),
        ),
        ({"question": "q?", "answer": "1999"}, "r1searcher_2wiki_500", Question("q?", ("1999",), "2wikimultihopqa")),
        (
            {"id": "2hop__1", "question": "q?", "answer": "five", "answer_aliases": ["5"], "answerable": True},
            "musique_ans_dev",
            Question("q?", ("five", "5"), "musique"),
        ),
        ({"Question": " q\n ? ", "Answer": "james madison"}, "bamboogle", Question("q ?", ("james madison",), "bamboogle")),
        ({"question": "q?", "answer": "[sic] x"}, "nq", Question("q?", ("[sic] x",), "nq")),
        ({"question": "q?", "answer": 1999}, "nq", Question("q?", ("1999",), "nq")),
    ],
)
def test_rows_of_every_set_are_read(row: dict, file: str, question: Question) -> None:
    assert question_of("row 1", row, file) == question


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"answer": "x"}, "row 3 has no question"),
        ({"question": "  ", "answer": "x"}, "row 3 has no question"),
        ({"question": 7, "answer": "x"}, "row 3 has no question"),
        ({"question": "q?"}, "row 3 has no answers"),
        ({"question": "q?", "answer": []}, "row 3 has no answers"),
        ({"question": "q?", "golden_answers": [" ", None]}, "row 3 has no answers"),
        ({"question": "q?", "answer": {"aliases": []}}, "row 3 has no answers"),
        ({"question": "q?", "answer": "x", "data_source": "quiz"}, "of no known set"),
        (["q?", "x"], "row 3 is not an object"),
        (None, "row 3 is not an object"),
    ],
)
def test_a_bad_row_is_named(row: object, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        question_of("row 3", row, "file")
    assert "\n" not in str(error.value)


def test_the_three_formats_hold_the_same_questions(tmp_path: Path) -> None:
    rows = [SEARCH_R1, {**SEARCH_R1, "question": "who else?", "data_source": "hotpotqa"}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    first, second, third = (read_questions(path) for path in sorted(tmp_path.iterdir()))
    assert first == second == third and [question.set for question in first] == ["nq", "hotpotqa"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nq.json", None, "cannot be read"),
        ("nq.json", '[{"question": "q", "answer": "x"}, {"ques', "cannot be read"),
        ("nq.json", '{"question": "q"}', "is not a list"),
        ("nq.json", "[]", "holds no rows"),
        ("nq.jsonl", '{"question": "q", "answer": "x"}\n{"ques', "nq.jsonl:2 is not JSON"),
        ("nq.jsonl", '{"question": "q", "answer": "x"}\n{"question": "q"}', "row 2 has no answers"),
        ("nq.jsonl", "", "holds no rows"),
        ("nq.parquet", "PAR1 cut off", "cannot be read"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=said) as error:
        read_questions(tmp_path / name)
    assert "\n" not in str(error.value) and name in str(error.value)


# ---- folders


def folder(path: Path) -> Path:
    for name in ("train", "test"):
        (path / f"{name}.jsonl").write_text(json.dumps({**SEARCH_R1, "question": name}))
    (path / "bamboogle.json").write_text(json.dumps([{"question": "b", "answer": "x"}]))
    (path / "corpus.jsonl").write_text('{"id": "1", "contents": "\\"A\\"\\nsome text"}')
    return path


def test_every_file_is_a_split_and_splits_can_be_joined(tmp_path: Path) -> None:
    data = open_data(str(folder(tmp_path)))
    assert data.splits == ("bamboogle", "test", "train")
    assert [question.text for question in data.questions("test+bamboogle")] == ["test", "b"]
    assert len(data.corpus().passages) == 1
    with pytest.raises(UserError, match="choose one of bamboogle, test, train"):
        data.questions("test+dev")


def test_the_questions_of_a_split_are_put_together_once(tmp_path: Path) -> None:
    for data, split in ((open_data(str(folder(tmp_path))), "test+train"), (open_data("generated"), "valid_seen")):
        assert data.questions(split) is data.questions(split)


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    before = open_data(str(folder(tmp_path))).fingerprint
    (tmp_path / "b").mkdir()
    assert open_data(str(folder(tmp_path / "b"))).fingerprint == before
    (tmp_path / "c").mkdir()
    (folder(tmp_path / "c") / "test.jsonl").write_text(json.dumps(SEARCH_R1))
    assert open_data(str(tmp_path / "c")).fingerprint != before


def test_originals_are_preferred_where_the_variable_leads_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "searchqa").mkdir()
    monkeypatch.setenv("SEED_OPD_DATA", str(tmp_path))
    assert open_data().source == open_data("original").source == str(folder(tmp_path / "searchqa"))
    assert "1 train" in list(report())[1]
    monkeypatch.setenv("SEED_OPD_DATA", str(tmp_path / "nowhere"))
    assert open_data() is open_data("generated")
    with pytest.raises(UserError, match="nowhere/searchqa"):
        open_data("original")
    monkeypatch.delenv("SEED_OPD_DATA")
    with pytest.raises(UserError, match="not set"):
        open_data("original")


def test_nothing_is_quietly_empty(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        open_data(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="no question file"):
        open_data(str(tmp_path)).questions("train")
    (tmp_path / "nq.json").write_text("[]")
    with pytest.raises(UserError, match="single file"):
        open_data(str(tmp_path / "nq.json")).corpus()
