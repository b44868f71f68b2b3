"""Packed tables of a segment's names, by their letters and digits only."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import msgspec

from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.packed import Rows, Table
from repertory.index.keywords.typos import OneEdit

MIN_MISSPELT_LENGTH = 2  # characters of a query; a name of three may lack one


class NameTables(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The rows of a segment by the names of its items.

    Attributes:
        names: By name.
        ids: By id, if it differs from the name.
        aliases: By alias, if it differs from the name.
        unprefixed: By the rest of a name that begins with its server's name.
    """

    names: Table
    ids: Table
    aliases: Table
    unprefixed: Table

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """Make the tables of entries; a row is an entry's place."""
        ids = [(compact_name(entry.id), row) for row, entry in enumerate(entries)]
        return cls(
            names=Table.of((entry.compact, row) for row, entry in enumerate(entries)),
            ids=Table.of((key, row) for key, row in ids if key != entries[row].compact),
            aliases=Table.of(
                (key, row)
                for row, entry in enumerate(entries)
                if entry.aliases
                for key in {*map(compact_name, entry.aliases)} - {entry.compact}
            ),
            unprefixed=Table.of(
                (entry.compact.removeprefix(server), row)
                for row, entry in enumerate(entries)
                if (server := compact_name(entry.server)) and entry.compact.startswith(server)
            ),
        )

    @classmethod
    def merged(cls, parts: Sequence["NameTables"], moved: Sequence[Rows]) -> Self:
        """Merge tables. ``moved`` has the new row of each row of each part, or -1 to drop it."""
        tables = {name: [part.tables[name] for part in parts] for name in cls.__struct_fields__}
        return cls(**{name: Table.merged(held, moved)[0] for name, held in tables.items()})

    @property
    def tables(self) -> Mapping[str, Table]:
        """All tables by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @cached_property
    def one_edit(self) -> OneEdit:
        """The names and aliases one edit away from a given one."""
        return OneEdit((self.names.keys.slices, self.aliases.keys.slices), MIN_MISSPELT_LENGTH)
