"""Answers are checked before anything is trained on them."""

from __future__ import annotations

import math

import pytest

from seed_opd.errors import RunStopped, UserError
from seed_opd.policy.engine import Sampled, Sampling
from seed_opd.policy.seeds import seed_number
from seed_opd.policy.vllm_answers import SEED_BITS, Bounds, check_lengths, checked, fields

BOUNDS = Bounds(end_ids=(7,), vocab_size=100, max_model_len=50)
SAMPLING = Sampling(0.5, 4)


class Grammar:
    grammar = 'root ::= "a"'


def check(ids=(1, 2, 7), log_probs=(-1.0, 0.0, -2), finish="stop", versions=frozenset({"v"}), version="v"):
    return checked(ids, log_probs, finish, versions, sampling=SAMPLING, bounds=BOUNDS, version=version)


def test_a_good_answer_is_a_response():
    assert check() == Sampled((1, 2, 7), (-1.0, 0.0, -2.0), True)
    assert not check(finish="length").finished
    assert check(log_probs=(1e-6, -1, -1)).log_probs[0] == 1e-6
    assert check(versions=set(), version=None).finished


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ids": None}, "no list of 1 to 4 token ids"),
        ({"ids": ()}, "no list of 1 to 4"),
        ({"ids": (1, 2, 3, 4, 5)}, "no list of 1 to 4"),
        ({"ids": (1, 100, 7)}, "not a number below 100"),
        ({"ids": (1, -1, 7)}, "not a number below 100"),
        ({"ids": (1, True, 7)}, "not a number below 100"),
        ({"ids": (1, 2.0, 7)}, "not a number below 100"),
        ({"ids": (1, "2", 7)}, "not a number below 100"),
        ({"log_probs": None}, "one log-prob for each token"),
        ({"log_probs": (-1.0, -1.0)}, "one log-prob for each token"),
        ({"log_probs": (-1.0, None, -1.0)}, "a log-prob is not a number"),
        ({"log_probs": (-1.0, math.nan, -1.0)}, "a log-prob is not a number"),
        ({"log_probs": (-1.0, -math.inf, -1.0)}, "a log-prob is not a number"),
        ({"log_probs": (-1.0, -9999.0, -1.0)}, "a log-prob is not a number"),
        ({"log_probs": (-1.0, 0.1, -1.0)}, "a log-prob is not a number"),
        ({"finish": "abort"}, "ended for the reason 'abort'"),
        ({"finish": None}, "ended for the reason 'None'"),
        ({"versions": {"other"}}, "with the weights other and not with v"),
        ({"versions": {"v", "other"}}, "with the weights other, v and not with v"),
        ({"versions": set()}, "with the weights none that it names and not with v"),
    ],
)
def test_what_cannot_be_an_answer_stops_the_run(change, sentence):
    with pytest.raises(RunStopped, match=sentence):
        check(**change)


def test_what_is_asked():
    asked = fields(SAMPLING, "a seed", None, BOUNDS)
    assert asked["temperature"] == 0.5 and asked["max_tokens"] == 4 and asked["logprobs"] == 0
    assert asked["stop_token_ids"] == [7] and asked["ignore_eos"] is True
    assert "structured_outputs" not in asked
    constrained = fields(SAMPLING, "a seed", Grammar(), BOUNDS)
    assert constrained["structured_outputs"] == {"grammar": 'root ::= "a"'} and constrained["ignore_eos"] is False


def test_seeds_are_numbers_that_vllm_takes():
    numbers = [seed_number(f"update/1/{n}", SEED_BITS) for n in range(100)]
    assert len(set(numbers)) == 100 and all(0 <= number < 2**63 for number in numbers)
    assert seed_number("update/1/0", SEED_BITS) == numbers[0]


def test_what_would_be_cut_for_room_is_refused():
    check_lengths([[1] * 46, [1]], SAMPLING, BOUNDS)
    check_lengths([], SAMPLING, BOUNDS)
    with pytest.raises(UserError, match="max_model_len is 50, and a prompt of 47 tokens may get a response of 4"):
        check_lengths([[1], [1] * 47], SAMPLING, BOUNDS)
