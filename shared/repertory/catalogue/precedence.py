"""Which of several items takes precedence: the one of the source that the catalogue names first."""

from collections.abc import Callable, Sequence
from typing import Protocol

Precedence = Callable[["Sourced"], tuple[int, str]]  # a key to sort items by


class Sourced(Protocol):
    """What is compared of an item."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def source(self) -> str:
        """The name of its source."""
        ...


def by_precedence(names: Sequence[str]) -> Precedence:
    """The key that sorts items by their sources, and those of one source by their ids.

    Args:
        names: The names of the sources, highest precedence first; unknown sources come last.
    """
    rank = {name: place for place, name in enumerate(names)}
    return lambda item: (rank.get(item.source, len(rank)), item.id)
