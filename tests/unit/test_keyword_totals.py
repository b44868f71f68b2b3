"""The totals of the rows that a query's words lead to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords.totals import Totals

ROWS = st.dictionaries(st.integers(0, 30), st.integers(1, 9), max_size=12)


@given(read=st.lists(ROWS, max_size=5), count=st.integers(1, 8))
def test_the_highest_are_those_of_all_sums(read: list[dict[int, int]], count: int) -> None:
    """As many as are asked for, and those that equal the last; no earlier use changes them."""
    sums = {row: sum(one.get(row, 0) for one in read) for one in read for row in one}
    least = sorted(sums.values(), reverse=True)[:count][-1] if sums else 0
    arrays = [
        (np.array([*one], np.int32), np.array([*one.values()], np.float32)) for one in read if one
    ]
    found = Totals.of(arrays, 31).highest(count)
    expected = {row: value for row, value in sorted(sums.items()) if value >= least}
    assert dict(zip(found.rows.tolist(), found.values.tolist(), strict=True)) == expected
    assert found.rows.tolist() == [*expected]


def test_what_fails_leaves_nothing_behind() -> None:
    """Rows that an index does not have are an error; the next totals are right."""
    ones = np.ones(2, np.float32)
    with pytest.raises(IndexError):
        Totals.of([(np.array([0, 1], np.int32), ones), (np.array([0, 999], np.int32), ones)], 2)
    found = Totals.of([(np.array([1, 0], np.int32), ones)], 2)
    assert found.values.tolist() == [1.0, 1.0]
