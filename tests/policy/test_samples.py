"""Batches by length: nothing is lost, memory is bounded, little is padded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seed_opd.policy.samples import batches_by_tokens


@given(st.lists(st.integers(1, 900), max_size=60), st.integers(1, 4000), st.integers(0, 2000))
def test_every_index_once_within_the_budget_longest_first(lengths, budget, spared):
    batches = batches_by_tokens(lengths, budget, spared)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= budget


def test_a_batch_ends_where_the_rest_would_be_mostly_padding():
    assert batches_by_tokens([100] + [10] * 20, 10_000, spared=512) == [[0], list(range(1, 21))]
    assert batches_by_tokens([100] + [10] * 4, 10_000, spared=512) == [list(range(5))]
    assert batches_by_tokens([100] + [99] * 99, 100_000, spared=512) == [list(range(100))]
