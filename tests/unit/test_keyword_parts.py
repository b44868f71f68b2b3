"""The rows of an index are divided among its parts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from repertory.index.keywords.index import KeywordIndex
from tests.support.builders import tool

SIZES = (60, 12, 2)
INDEX = KeywordIndex.empty()
for number, size in enumerate(SIZES):
    INDEX = INDEX.updated((), [tool(f"s{number}__tool_{place}") for place in range(size)])


def divided(rows: NDArray[np.int64]) -> dict[int, int]:
    """The first row of the part that contains each row."""
    found: dict[int, int] = {}
    for part, places in INDEX.divided(rows):
        found |= dict.fromkeys(rows[places].tolist(), part.start)
    return found


@given(st.lists(st.sets(st.integers(0, sum(SIZES) - 1), min_size=1), min_size=1, max_size=5))
def test_an_array_of_rows_is_divided_by_part(asked: list[set[int]]) -> None:
    """Repeated calls, and calls with other arrays before, do not change the result."""
    assert [part.size for part in INDEX.parts] == [*SIZES]
    for one in [*asked, *asked[::-1]]:
        rows = np.array(sorted(one), np.int64)
        expected = {row: max(start for start in (0, 60, 72) if start <= row) for row in one}
        assert divided(rows) == expected
        assert divided(rows) == expected
