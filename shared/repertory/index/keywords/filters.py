"""Which rows a filter allows."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.document import Entry
from repertory.index.keywords.postings import Rows
from repertory.index.vectors import Filter

_FIELDS = ("kind", "source", "server")


class FilterIndex:
    """Applies filters to rows."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of some rows a filter allows."""
        allowed = np.ones(len(rows), np.bool_)
        for field, values in zip(_FIELDS, (where.kinds, where.sources, where.servers), strict=True):
            if values:
                codes, column = self._columns[field]
                wanted = [codes[value] for value in values if value in codes]
                allowed &= np.isin(column[rows], wanted)
        if where.tags:
            tagged = [row for tag in where.tags for row in self._tagged.get(tag, ())]
            allowed &= np.isin(rows, np.array(tagged, np.int64))
        return allowed

    @cached_property
    def _columns(self) -> dict[str, tuple[dict[str, int], Rows]]:
        """Each field of every entry as a code, and the code of each of its values."""
        columns = {}
        for field in _FIELDS:
            codes: dict[str, int] = {}
            column = [codes.setdefault(getattr(e, field), len(codes)) for e in self._entries]
            columns[field] = codes, np.array(column, np.int32)
        return columns

    @cached_property
    def _tagged(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, entry in enumerate(self._entries):
            for tag in entry.tags:
                rows.setdefault(tag, []).append(row)
        return rows
