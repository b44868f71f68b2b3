"""Packed tables can be merged in small portions, and packed strings can be looked up."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords import packed
from repertory.index.keywords.packed import Strings, Table

MAX_ROWS = 12
WORDS = st.text("abc", min_size=1, max_size=2)
TABLES = st.lists(
    st.sets(st.tuples(WORDS, st.integers(0, MAX_ROWS - 1)), max_size=20), min_size=1, max_size=3
)


@given(tables=TABLES, portion=st.integers(1, 8), chosen=st.randoms(use_true_random=False))
def test_a_merged_table_has_the_kept_rows_of_its_parts(
    tables: Sequence[set[tuple[str, int]]], portion: int, chosen: Random
) -> None:
    """They are in order, without dropped rows, for any number of rows that are sorted at once."""
    free = [*range(len(tables) * MAX_ROWS)]
    moved = []
    for _ in tables:
        new = sorted(chosen.sample(free, MAX_ROWS))
        free = [row for row in free if row not in new]
        moved.append(np.array([-1 if chosen.random() < 0.3 else row for row in new], np.int32))
    made = [Table.of(sorted(table)) for table in tables]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "SORT_SIZE", portion)
        merged, places = Table.merged(made, moved)
    wanted = sorted(
        (word, int(new[row]))
        for table, new in zip(tables, moved, strict=True)
        for word, row in table
        if new[row] >= 0
    )
    held = [(key, row) for key in merged.keys for row in merged.under(key).tolist()]
    assert held == wanted
    assert [*merged.keys] == sorted({word for word, _ in wanted})
    given_rows = np.concatenate([new[one.rows] for one, new in zip(made, moved, strict=True)])
    assert given_rows[places].tolist() == merged.rows.tolist()


# Many of these strings share their first bytes, and some contain the lowest character.
LIKE = st.text("a\0é文\U0001f600", max_size=12)


@given(held=st.sets(LIKE, max_size=80), typed=LIKE)
def test_a_string_is_found_at_its_place(held: set[str], typed: str) -> None:
    """Look-ups of strings and prefixes give the same result as a comparison with every string."""
    ordered = sorted(held)
    strings = Strings.of(ordered)
    assert [*strings] == ordered
    assert [strings.find(one) for one in ordered] == [*range(len(ordered))]
    assert strings.find(typed) == (ordered.index(typed) if typed in held else None)
    begun = [one for one in ordered if one.startswith(typed)]
    assert [strings[place] for place in strings.beginning_with(typed)] == begun
