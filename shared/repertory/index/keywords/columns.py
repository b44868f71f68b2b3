"""The fields of a segment's items that searches are filtered by, packed."""

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.document import Entry
from repertory.index.keywords.packed import Rows, Strings, Table
from repertory.index.vectors import Filter

FIELDS = ("kind", "source", "server")


class Column(msgspec.Struct, frozen=True):
    """One field of every item: its values, sorted, and the place of each row's own value."""

    values: Strings
    codes: Rows

    @classmethod
    def of(cls, values: Sequence[str]) -> Self:
        """The column of some values, one for each row."""
        known = sorted({*values})
        place = {value: code for code, value in enumerate(known)}
        return cls(Strings.of(known), np.array([place[value] for value in values], np.int32))

    def is_any(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Which rows have one of some values."""
        wanted = np.zeros(len(self.values), np.bool_)
        wanted[[code for value in values if (code := self.values.find(value)) is not None]] = True
        return wanted[self.codes]


class Columns(msgspec.Struct, frozen=True):
    """The filtered fields of a segment's items.

    Attributes:
        fields: The columns of ``FIELDS``.
        tags: The rows of each tag.
    """

    fields: Mapping[str, Column]
    tags: Table

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """The columns of some entries; a row is an entry's place."""
        fields = {
            field: Column.of([str(getattr(entry, field)) for entry in entries]) for field in FIELDS
        }
        tags = ((tag, row) for row, entry in enumerate(entries) for tag in {*entry.tags})
        return cls(fields, Table.of(tags))

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of some rows a filter allows."""
        allowed = np.ones(len(rows), np.bool_)
        for field, values in zip(FIELDS, (where.kinds, where.sources, where.servers), strict=True):
            if values:
                allowed &= self.fields[field].is_any(values)[rows]
        if where.tags:
            tagged = [self.tags.under(tag) for tag in where.tags]
            allowed &= np.isin(rows, np.concatenate(tagged))
        return allowed
