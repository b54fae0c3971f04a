"""The best of many scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seed_opd.environments.ranking import best

SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=12)


@given(SCORES, st.integers(1, 6))
def test_it_is_a_stable_sort_without_the_zeros(scores: list[float], most: int) -> None:
    wanted = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place])[:most]
    assert best(np.array(scores, dtype=np.float32), most).tolist() == wanted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_smallest_score_counts(dtype: type) -> None:
    assert best(np.array([0, np.nextafter(dtype(0), dtype(1)), 0], dtype=dtype), 1).tolist() == [1]
