"""The precedence of items: those of the source that the catalogue lists first come first."""

from collections.abc import Callable, Sequence
from typing import Protocol

Precedence = Callable[["Sourced"], tuple[int, str]]  # a key to sort items by


class Sourced(Protocol):
    """The fields of an item that are compared."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def source(self) -> str:
        """The name of its source."""
        ...


def by_precedence(names: Sequence[str]) -> Precedence:
    """A sort key that orders items by source, then by id.

    Args:
        names: The names of the sources, highest precedence first; unknown sources come last.
    """
    rank = {name: place for place, name in enumerate(names)}
    return lambda item: (rank.get(item.source, len(rank)), item.id)
