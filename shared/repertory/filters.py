"""Checks the values of filters: an unknown one would look like a query that finds nothing."""

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

from repertory.catalogue.safety import CLAIMS
from repertory.errors import UnknownFilterError
from repertory.index.vectors import Filter
from repertory.stats import SourceState

if TYPE_CHECKING:
    from repertory.index.keywords.index import KeywordIndex

MAX_LISTED = 10
MAX_LENGTH = 100  # of a value in a message


def check(
    where: Filter, index: "KeywordIndex", sources: Callable[[], Sequence[SourceState]]
) -> None:
    """Check that the index knows the sources, servers and tags of a filter.

    A source without items is known, too, and so are the tags of what tools claim. An empty index
    knows all values.

    Args:
        where: The filter.
        index: The indexed items.
        sources: Gives the sources as they were last scanned.

    Raises:
        UnknownFilterError: A value is unknown; the message lists the known ones, the closest first.
    """
    if not len(index):
        return
    for what, given in (("source", where.sources), ("server", where.servers), ("tag", where.tags)):
        if not given:  # counting all values takes a while
            continue
        known = {*index.counts(what), *(CLAIMS if what == "tag" else ())} - {""}
        if known.issuperset(given):
            continue
        if what != "tag":
            known |= {one.name for one in sources() if what == "source" or one.type == "mcp"}
        for value in given:
            if value not in known:
                raise UnknownFilterError(
                    f"There is no {what} {value[:MAX_LENGTH]!r}; {_listed(value, known)}"
                )


def _listed(value: str, known: Set[str]) -> str:
    """The known values in words, the closest first."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only for a wrong value

    if not known:
        return "the index has none."
    ranked = process.extract(value[:MAX_LENGTH], sorted(known), scorer=fuzz.ratio, limit=MAX_LISTED)
    names = ", ".join(name for name, *_ in ranked)
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f"available: {names}{more}."
