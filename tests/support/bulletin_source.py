"""A source that reads no files: bulletins on a board, which reports its own changes.

It is an example of a source type that Repertory does not ship. ``registered`` registers it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.errors import SourceError
from repertory.sources import registry
from repertory.sources.entry import check_options, checked_name
from repertory.sources.source import Scan, Source

TYPE = "bulletins"


class Board:
    """The bulletins of one board, and the functions to call when they change."""

    def __init__(self) -> None:
        self.is_closed = False
        self.listeners: list[Callable[[], None]] = []
        self._bulletins: list[str] = []

    def post(self, *bulletins: str) -> None:
        """Replace the bulletins and report the change."""
        self._bulletins = list(bulletins)
        for listener in self.listeners:
            listener()

    def read(self) -> list[str]:
        """The current bulletins; raises SourceError if the board is closed."""
        if self.is_closed:
            raise SourceError("The board is closed.")
        return self._bulletins


BOARDS: dict[str, Board] = {}


class Bulletins(Source):
    """The bulletins of a board as documents."""

    type = TYPE

    def __init__(self, name: str) -> None:
        self.name = name
        self.location = f"board {name}"

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": TYPE, "name": self.name}

    @override
    def scan(self) -> Scan:
        items = [
            Item(id=f"{self.name}/{text}", kind=Kind.DOCUMENT, name=text, source=self.name)
            for text in BOARDS[self.name].read()
        ]
        return Scan(items=items)

    @override
    def watch(self, changed: Callable[[], None], interval: float) -> Callable[[], None]:
        listeners = BOARDS[self.name].listeners
        listeners.append(changed)
        changed()
        return lambda: listeners.remove(changed)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:  # noqa: ARG001 - common signature
    """Build the source of a configuration entry."""
    check_options(entry, "name")
    return [Bulletins(checked_name(entry.get("name")))]


def registered(monkeypatch: pytest.MonkeyPatch, name: str) -> Board:
    """Add the source type to the registry, and return a new board with this name."""
    monkeypatch.setitem(registry._BUILDERS, TYPE, __name__)
    monkeypatch.setitem(BOARDS, name, Board())
    return BOARDS[name]
