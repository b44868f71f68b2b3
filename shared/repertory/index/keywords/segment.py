"""A segment: some items of a keyword index, packed and immutable.

It consists of a few arrays, which are stored and loaded unchanged; see ``snapshot.py``.
"""

import contextlib
import hashlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import KEY_BYTES, Item, Kind, item_key
from repertory.catalogue.policy import Policy
from repertory.index.keywords.columns import FIELDS, Column, Columns
from repertory.index.keywords.document import Entry, entry, term_weights
from repertory.index.keywords.mapped import MappedArrays
from repertory.index.keywords.name_tables import NameTables
from repertory.index.keywords.packed import (
    Arrays,
    Offsets,
    Rows,
    Strings,
    Table,
    numbers,
    packed,
)
from repertory.index.keywords.postings import Postings
from repertory.index.keywords.word_tables import WordTables

MAPPED_FROM = 20_000  # items of a segment from which its largest arrays are mapped: 25 MB
MAX_DECODED = 300  # entries kept decoded, as a search reads each of its hits several times

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode

Keys = NDArray[np.bytes_]
KEY = np.dtype(f"S{KEY_BYTES}")


class _Id(msgspec.Struct, array_like=True):
    """The first field of an entry."""

    id: str


_decode_id = msgspec.msgpack.Decoder(_Id).decode


class Segment:
    """Some items, by row: their entries, the postings of their terms, their names and fields.

    Args:
        entries: The entry of each item as MessagePack, one after the other.
        offsets: The start of each entry, and the end of the last one.
        keys: The key (``item_key``) of each item.
        policies: The rows of the items that have a policy.
        name: A digest of the entries, whose hashes cover everything else; None to compute it.
    """

    def __init__(
        self,
        *,
        entries: memoryview,
        offsets: Offsets,
        keys: Keys,
        policies: Rows,
        postings: Postings,
        names: NameTables,
        columns: Columns,
        name: str | None = None,
    ) -> None:
        self.name = name or hashlib.blake2b(entries, digest_size=16).hexdigest()
        self.offsets = offsets
        self.keys = keys
        self.policies = policies
        self.postings = postings
        self.names = names
        self.columns = columns
        self.words = WordTables(postings.vocabulary)
        self.is_prepared = False
        self._entries = entries
        self._mapped: MappedArrays | None = None
        self._offsets = numbers(offsets)
        self._decoded: dict[int, Entry] = {}

    @classmethod
    def of(cls, items: Iterable[Item]) -> Self:
        """Build the segment of some items with distinct ids."""
        ordered = sorted(items, key=lambda item: item.id)
        entries = [entry(item) for item in ordered]
        text, offsets = packed(map(_encode, entries))
        keys = [item_key(one.id).to_bytes(KEY_BYTES, "big") for one in entries]
        return cls(
            entries=memoryview(text),
            offsets=offsets,
            keys=np.array(keys, KEY),
            policies=np.array([row for row, one in enumerate(entries) if one.policy], np.int32),
            postings=Postings.of([*map(term_weights, ordered)]),
            names=NameTables.of(entries),
            columns=Columns.of(entries),
        )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def entry(self, row: int) -> Entry:
        """The entry of a row."""
        if (found := self._decoded.get(row)) is None:
            found = _decode(self.stored(row))
            if len(self._decoded) >= MAX_DECODED:
                self._decoded.clear()
            self._decoded[row] = found
        return found

    def id_of(self, row: int) -> str:
        """The id of a row's item. Rows are ordered by id."""
        return _decode_id(self.stored(row)).id

    def stored(self, row: int) -> memoryview:
        """The entry of a row as it is stored."""
        return self._entries[self._offsets[row] : self._offsets[row + 1]]

    @cached_property
    def policy_of(self) -> dict[int, Policy]:
        """The policies of the items that have one, by row."""
        found = ((row, self.entry(row).policy) for row in self.policies.tolist())
        return {row: policy for row, policy in found if policy}

    @cached_property
    def skill_digests(self) -> tuple[Rows, NDArray[np.uint64]]:
        """The rows of the skills, and for each a digest of its whole entry."""
        skills = np.flatnonzero(self.columns.fields["kind"].is_any([Kind.SKILL])).astype(np.int32)
        stored = map(self.stored, skills.tolist())
        digests = b"".join(hashlib.blake2b(one, digest_size=8).digest() for one in stored)
        return skills, np.frombuffer(digests, np.uint64)

    @cached_property
    def by_key(self) -> Rows:
        """The rows, ordered by key."""
        return np.argsort(self.keys).astype(np.int32)

    @cached_property
    def sorted_keys(self) -> Keys:
        """The keys in order."""
        return self.keys[self.by_key]

    def prepare(self, folder: Path | None = None) -> None:
        """Build all lookup tables now, so that no search waits.

        The largest arrays of a large segment move to a file in the folder, if possible.
        """
        _ = self.sorted_keys, self.names.one_edit, self.words.one_edit, self.words.with_character
        if folder and len(self) >= MAPPED_FROM and self._mapped is None:
            with contextlib.suppress(OSError):
                self._map(folder)
        self.is_prepared = True

    def _map(self, folder: Path) -> None:
        table, weights = self.postings.table, self.postings.weights
        text = np.frombuffer(self._entries, np.uint8)
        self._mapped = MappedArrays(folder, [text, table.rows, weights])
        text, rows, weights = self._mapped.arrays
        self._entries = text.data
        self.postings = Postings(Table(table.keys, table.offsets, rows), weights)

    def free_memory(self) -> None:
        """Release the memory of the mapped arrays after a full read; searches rarely read them."""
        if self._mapped is not None:
            self._mapped.free_memory()

    def arrays(self) -> Arrays:
        """The whole segment as arrays by name."""
        arrays: dict[str, NDArray[Any]] = {
            "entries": np.frombuffer(self._entries, np.uint8),
            "offsets": self.offsets,
            "keys": self.keys,
            "policies": self.policies,
            "postings.weights": self.postings.weights,
            "duplicate_keys": self.columns.duplicate_keys,
        }
        tables = {"postings": self.postings.table, "tags": self.columns.tags, **self.names.tables}
        for name, table in tables.items():
            arrays |= table.arrays(name)
        for field, column in self.columns.fields.items():
            arrays |= {f"{field}.codes": column.codes, **column.values.arrays(field)}
        return arrays

    @classmethod
    def from_arrays(cls, name: str, arrays: Arrays) -> Self:
        """A segment from its arrays.

        Raises:
            KeyError: An array is missing.
        """
        names = {one: Table.from_arrays(one, arrays) for one in NameTables.__struct_fields__}
        fields = {
            one: Column(Strings.from_arrays(one, arrays), arrays[f"{one}.codes"]) for one in FIELDS
        }
        tags = Table.from_arrays("tags", arrays)
        return cls(
            name=name,
            entries=arrays["entries"].data,
            offsets=arrays["offsets"],
            keys=arrays["keys"],
            policies=arrays["policies"],
            postings=Postings(Table.from_arrays("postings", arrays), arrays["postings.weights"]),
            names=NameTables(**names),
            columns=Columns(fields, tags, arrays["duplicate_keys"]),
        )
