"""Check filter values, because an unknown one would look like a query without results."""

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

import msgspec

from repertory.catalogue.safety import CLAIMS
from repertory.errors import UnknownFilterError
from repertory.index.vectors import Filter
from repertory.text import normalized
from repertory.watch_status import SourceState

if TYPE_CHECKING:
    from repertory.index.keywords.index import KeywordIndex

MAX_LISTED = 10
MAX_LENGTH = 100  # characters of a value in a message


def checked(
    where: Filter, index: "KeywordIndex", sources: Callable[[], Sequence[SourceState]]
) -> Filter:
    """Check that the index knows the sources, servers and tags of a filter.

    Sources without items are known, too, and so are the tags for the claims of tools. An empty
    index accepts all values. Unicode forms may differ: the returned filter uses those of the index.

    Args:
        where: The filter.
        index: The indexed items.
        sources: Returns the sources as they were last scanned.

    Raises:
        UnknownFilterError: A value is unknown; the message lists the known ones, the closest first.
    """
    if not len(index):
        return where
    for what in ("source", "server", "tag"):
        given = getattr(where, f"{what}s")
        if not given:  # counting all values is slow
            continue
        known = {*index.counts(what), *(CLAIMS if what == "tag" else ())} - {""}
        if known.issuperset(given):
            continue
        if what != "tag":
            known |= {one.name for one in sources() if what == "source" or one.type == "mcp"}
        as_known = tuple(name for value in given for name in _known(what, value, known))
        where = msgspec.structs.replace(where, **{f"{what}s": as_known})
    return where


def _known(what: str, value: str, known: Set[str]) -> Sequence[str]:
    """The known values that match a value, usually only itself."""
    if value in known:
        return [value]
    alike = [one for one in known if normalized("NFC", one) == normalized("NFC", value)]
    if not alike:
        raise UnknownFilterError(
            f"There is no {what} {value[:MAX_LENGTH]!r}; {_listed(value, known)}"
        )
    return alike


def _listed(value: str, known: Set[str]) -> str:
    """List known values for a message, the closest first."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only for a wrong value

    if not known:
        return "the index has none."
    ranked = process.extract(value[:MAX_LENGTH], sorted(known), scorer=fuzz.ratio, limit=MAX_LISTED)
    names = ", ".join(name for name, *_ in ranked)
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f"available: {names}{more}."
