"""The scores of a query's words are summed up by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords.totals import Totals

ROWS = st.dictionaries(st.integers(0, 30), st.integers(1, 9), max_size=12)


@given(read=st.lists(ROWS, max_size=5), count=st.integers(1, 8))
def test_the_rows_with_the_highest_sums_are_returned(
    read: list[dict[int, int]], count: int
) -> None:
    """Rows that tie with the last one are included; earlier sums do not change the result."""
    sums = {row: sum(one.get(row, 0) for one in read) for one in read for row in one}
    least = sorted(sums.values(), reverse=True)[:count][-1] if sums else 0
    arrays = [
        (np.array([*one], np.int32), np.array([*one.values()], np.float32)) for one in read if one
    ]
    found = Totals.of(arrays, 31).highest(count)
    expected = {row: value for row, value in sorted(sums.items()) if value >= least}
    assert dict(zip(found.rows.tolist(), found.values.tolist(), strict=True)) == expected
    assert found.rows.tolist() == [*expected]


def test_an_error_does_not_affect_later_sums() -> None:
    """A row outside the index is an error; the next sums are right."""
    ones = np.ones(2, np.float32)
    with pytest.raises(IndexError):
        Totals.of([(np.array([0, 1], np.int32), ones), (np.array([0, 999], np.int32), ones)], 2)
    found = Totals.of([(np.array([1, 0], np.int32), ones)], 2)
    assert found.values.tolist() == [1.0, 1.0]
