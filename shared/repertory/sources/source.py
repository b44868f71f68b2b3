"""The port of a source: a place that items come from."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from repertory.catalogue.item import Item


class Severity(StrEnum):
    """How bad a problem is: a warning loads the item all the same, an error leaves it out."""

    WARNING = "warning"
    ERROR = "error"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong with one file, item or setting, said so that its author can mend it.

    Attributes:
        severity: ``error`` when the item was left out, ``warning`` when it was loaded all the same.
        message: One sentence: what is wrong and what to do.
        path: The file, or the server, that it is about.
        line: The line in the file, from 1; None where there is none to name.
        item: The id of the item; empty where there is none.
    """

    severity: Severity
    message: str
    path: str = ""
    line: int | None = None
    item: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}" if place else self.message


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a source found.

    Attributes:
        items: Every item that could be read, in a deterministic order, ids unique.
        problems: Everything that was wrong, errors and warnings.
        unread: The ids of items that are there but could not be read this time. What is indexed of
            them is kept: a failure is never a deletion.
        unread_under: What the ids start with of items whose very names could not be read (a folder
            that cannot be listed, a broken file of several items); what is indexed of them is kept.
    """

    items: list[Item]
    problems: list[Problem] = []
    unread: frozenset[str] = frozenset()
    unread_under: tuple[str, ...] = ()

    def keeps(self, item_id: str) -> bool:
        """Whether an indexed item that is not among ``items`` is to be kept all the same."""
        return item_id in self.unread or item_id.startswith(self.unread_under)


class Source(Protocol):
    """A configured place that items come from.

    A source never executes anything of an item, bounds what it reads, and reports one broken item
    as a problem while it goes on with the rest. Two are equal when they are set up alike, so that
    one that has read much can stay when a configuration is read anew.
    """

    @property
    def type(self) -> str:
        """The type of source, as it is written in a configuration (``skills``, ``mcp``, …)."""
        ...

    @property
    def name(self) -> str:
        """The name of this source, unique in its catalogue; item ids start with it."""
        ...

    @property
    def location(self) -> str:
        """Where it reads from, for people: a path, a command's name, a URL without its secrets."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """What tells this source from others, for the configuration hash; never a secret.

        Plain JSON values. Two sources of equal identity offer the same items.
        """
        ...

    def scan(self) -> Scan:
        """Look at the source once and return every item it offers now.

        An empty source is an empty scan, not an error.

        Raises:
            SourceError: The source as a whole cannot be read (a missing root, a server that does
                not answer). Its items are then kept as they are, marked stale.
        """
        ...
