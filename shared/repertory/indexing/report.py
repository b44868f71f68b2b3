"""What one run over the sources did, for people and for `stats`."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from repertory.sources.source import Problem


class Stage(StrEnum):
    """The stages of a run that take long enough to be watched."""

    SCAN = "Reading sources"
    EMBED = "Embedding"
    WRITE = "Writing vectors"


# Called with the stage, how much of it was just done, and how much there is in all.
Progress = Callable[[Stage, int, int], None]


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found at one source.

    Attributes:
        items: How many items of it are in the index after the run.
        stale: How many of those were kept though they could not be read this time.
        error: Why the source as a whole could not be read; empty when it could.
        seen: When it was last read whole, in seconds since the epoch; 0 for never.
    """

    name: str
    type: str
    location: str
    items: int = 0
    stale: int = 0
    error: str = ""
    seen: float = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one run did.

    Attributes:
        collection: The collection that was written.
        model: The model whose vectors it holds.
        revision: The revision of the run.
        sources: What was found at each source, in the catalogue's order.
        items: How many items are indexed after the run.
        points: How many vectors are, sections included.
        added, changed, removed, unchanged: Items. A change of a tag or a path alone is a change.
        embedded: How many texts were embedded; the rest had their vectors already.
        problems: What was wrong with files, items and servers.
        notices: What a user should know of the run itself.
        seconds: How long it took.
    """

    collection: str
    model: str
    revision: int
    sources: list[SourceReport]
    items: int
    points: int
    added: int
    changed: int
    removed: int
    unchanged: int
    embedded: int
    problems: list[Problem] = []
    notices: list[str] = []
    seconds: float = 0.0

    @property
    def stale_sources(self) -> tuple[str, ...]:
        """The names of the sources of which old items were kept."""
        return tuple(source.name for source in self.sources if source.error or source.stale)
