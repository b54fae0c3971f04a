"""A study's tables against means and intervals worked out by hand."""

from __future__ import annotations

import json
import lzma

import pytest

from seed_opd.errors import UserError
from seed_opd.evaluation.study import Results, read_results, shown, tables


def evaluation(method, seed, update, macro, fraction=1.0):
    about = {"method": method, "seed": seed, "fraction": fraction, "kind": "evaluation", "panel": "seen"}
    return {**about, "update": update, "macro": macro}


ROWS = [
    *(
        evaluation("grpo", seed, update, macro)
        for seed, update, macro in ((0, 0, 0.1), (0, 8, 0.4), (1, 0, 0.1), (1, 8, 0.2))
    ),
    *(evaluation("seed", seed, update, macro) for seed, update, macro in ((0, 4, 0.9), (0, 8, 0.5), (1, 8, 0.5))),
]


def table(results, title):
    (found,) = [one for one in tables(results) if one.title.startswith(title)]
    return found


def test_means_and_intervals_over_seeds():
    """0.4 and 0.2: mean 0.3, deviation 0.1414, t(1 degree, 97.5%) = 12.706, half 12.706 x 0.1 = 1.2706, more than all."""
    rows = table(Results("main", "grpo", ROWS), "Success, macro").rows
    assert rows[0] == ["grpo", "seen", "2", "10.0%", "30.0% [0.0%, 100.0%]", "30.0% [0.0%, 100.0%]"]
    assert rows[1][4].startswith("50.0% ")
    assert rows[1][5].startswith("70.0% ")  # best: 0.9 and 0.5


def test_only_a_share_is_cut_at_0_and_100_percent():
    """0.3 and 0.32: half 12.706 x 0.01."""
    assert shown([0.3, 0.32]) == "31.0% [18.3%, 43.7%]"
    assert shown([0.4, 0.2], sign=True) == "+30.0% [-97.1%, +157.1%]"


def test_differences_are_paired_by_seed():
    rows = table(Results("main", "grpo", ROWS), "Last evaluation minus grpo's").rows
    assert rows == [["seed", "seen", shown([0.1, 0.3], sign=True), "2 of 2"]]
    assert rows[0][2].startswith("+20.0% [")


def test_a_single_seed_has_no_interval():
    assert shown([0.25]) == "25.0%"


def test_sample_efficiency_has_a_column_per_share():
    rows = [*ROWS, evaluation("grpo", 0, 8, 0.05, fraction=0.5)]
    found = table(Results("main", "grpo", rows), "Sample efficiency")
    assert found.header == ["method", "panel", "50% of the tasks", "100% of the tasks"]
    assert found.rows[0][2] == "5.0%" and found.rows[1][2] == "-"


def test_rows_are_read_back(tmp_path):
    path = tmp_path / "study.jsonl.xz"
    lines = [{"kind": "study", "name": "main", "baseline": "grpo"}, *ROWS]
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    assert read_results(path) == Results("main", "grpo", ROWS)


@pytest.mark.parametrize("content", [b"", b"no xz", lzma.compress(b"no json\n"), lzma.compress(b'{"kind": "study"}\n')])
def test_what_is_no_study_gives_one_sentence(tmp_path, content):
    path = tmp_path / "study.jsonl.xz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="cannot be read as a study's rows"):
        read_results(path)


def test_a_series_is_the_mean_of_each_seed_in_equal_stretches():
    """Updates 1 to 4 in two stretches, middles 1 and 3; update 0 belongs to the first."""
    about = {"method": "seed", "fraction": 1.0, "kind": "train"}
    rows = [
        {**about, "seed": seed, "update": update, "kl": kl}
        for seed, values in ((0, (9.0, 1.0, 2.0, 3.0, 5.0)), (1, (9.0, 0.0, 0.0, 8.0, 8.0)))
        for update, kl in enumerate(values)
    ]
    found = Results("main", "seed", rows).series("train", "seed", 1.0, "kl", bins=2)
    assert found == [(1.0, [4.0, 3.0]), (3.0, [4.0, 8.0])]
    assert Results("main", "seed", rows).series("train", "seed", 1.0, "none", bins=2) == []


def test_trends_say_where_a_metric_began_and_ended():
    about = {"method": "seed", "seed": 0, "fraction": 1.0, "kind": "train"}
    rows = [{**about, "update": update, "entropy": update / 8} for update in range(1, 9)]
    found = table(Results("main", "seed", rows), "From the first to the last quarter")
    assert found.rows == [["seed", "-", "0.188 to 0.938", "-", "-", "-", "-", "-"]]


def test_gaps_are_shares_of_all_support_and_of_all_objection():
    about = {"method": "seed", "seed": 0, "fraction": 1.0, "kind": "gaps", "outcome": "failure", "update": 1}
    rows = [
        {**about, "class": "action, open", "tokens": 4, "above": 3.0, "below": -1.0},
        {**about, "class": "think, sure", "tokens": 6, "above": 1.0, "below": -1.0},
    ]
    found = table(Results("main", "seed", rows), "Where hindsight speaks")
    assert found.rows == [
        ["seed", "failure", "action, open", "4", "0.5", "75%", "50%"],
        ["seed", "failure", "think, sure", "6", "0", "25%", "50%"],
    ]
    assert not any(one.title.startswith("Where") for one in tables(Results("main", "grpo", ROWS)))
