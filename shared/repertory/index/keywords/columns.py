"""Packed columns that searches read for every candidate: filter fields, actions, duplicate keys."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue import actions
from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.packed import Rows, Strings, Table, rearranged
from repertory.index.vectors import Filter

# The columns, with a function for an entry's value. ``actions`` are separated by spaces.
FIELDS: Mapping[str, Callable[[Entry], str]] = {
    "kind": lambda entry: entry.kind,
    "source": lambda entry: entry.source,
    "server": lambda entry: entry.server,
    "actions": lambda entry: " ".join(sorted(actions.of_name(entry.name))),
}


DuplicateKeys = NDArray[np.uint64]


class Column(msgspec.Struct, frozen=True):
    """One field of every item: the sorted values, and the place of each row's value."""

    values: Strings
    codes: Rows

    @classmethod
    def of(cls, values: Sequence[str]) -> Self:
        """Make a column from one value per row."""
        known = sorted({*values})
        place = {value: code for code, value in enumerate(known)}
        return cls(Strings.of(known), np.array([place[value] for value in values], np.int32))

    @classmethod
    def merged(cls, columns: Sequence["Column"], moved: Sequence[Rows]) -> Self:
        """Merge columns. ``moved`` has the new row of each row of each column, or -1 to drop it."""
        used = [np.unique(one.codes[new >= 0]) for one, new in zip(columns, moved, strict=True)]
        values, places = Strings.merged([one.values for one in columns], used)
        codes = [new[one.codes] for one, new in zip(columns, places, strict=True)]
        return cls(values, rearranged(codes, moved).astype(np.int32))

    def is_any(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Which rows have any of the values."""
        wanted = np.zeros(len(self.values), np.bool_)
        wanted[[code for value in values if (code := self.values.find(value)) is not None]] = True
        return wanted[self.codes]


class Columns(msgspec.Struct, frozen=True):
    """The columns of a segment's items.

    Attributes:
        fields: The columns of ``FIELDS``.
        tags: The rows of each tag.
        duplicate_keys: The ``duplicate_key`` of each row.
    """

    fields: Mapping[str, Column]
    tags: Table
    duplicate_keys: DuplicateKeys

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """Make the columns of entries; a row is an entry's place."""
        fields = {field: Column.of([*map(value_of, entries)]) for field, value_of in FIELDS.items()}
        tags = ((tag, row) for row, entry in enumerate(entries) for tag in {*entry.tags})
        return cls(fields, Table.of(tags), np.array([*map(duplicate_key, entries)], np.uint64))

    @classmethod
    def merged(cls, parts: Sequence["Columns"], moved: Sequence[Rows]) -> Self:
        """Merge the columns of several parts; ``moved`` is as in ``Column.merged``."""
        fields = {
            field: Column.merged([one.fields[field] for one in parts], moved) for field in FIELDS
        }
        tags, _ = Table.merged([one.tags for one in parts], moved)
        return cls(fields, tags, rearranged([one.duplicate_keys for one in parts], moved))

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of the rows a filter allows."""
        allowed = np.ones(len(rows), np.bool_)
        for field, values in where.conditions.items():
            if field == "tags":
                tagged = [self.tags.under(tag) for tag in values]
                allowed &= np.isin(rows, np.concatenate(tagged))
            else:
                allowed &= self.fields[field].is_any(values)[rows]
        return allowed


def duplicate_key(entry: Entry) -> int:
    """A digest of an item's kind and name, without case, separators and the server's name."""
    name = entry.compact.removeprefix(compact_name(entry.server)) or entry.compact
    digest = hashlib.blake2b(f"{entry.kind} {name}".encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(digest.digest())
