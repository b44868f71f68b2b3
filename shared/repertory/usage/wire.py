"""The JSON of a usage report. Every list is bounded; ``totals`` has the full lengths."""

from typing import Annotated

import msgspec
from msgspec import Meta


class SearchFinding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Searches for about the same thing.

    Attributes:
        queries: The most frequent queries; empty if they are hashed.
        digest: The digest of the most frequent one.
        searches: How many searches there were.
        callers: How many callers searched.
        last: When the last one was, in Unix seconds.
        confidence: The highest confidence of an item, shown or below the threshold.
        ms: The longest duration, in milliseconds.
        items: The items that the advice is about.
        advice: What to do.
        field: The policy field to set, ``aliases`` or ``pin``; empty if neither helps.
    """

    queries: list[str]
    digest: str
    searches: int
    callers: int
    last: float
    confidence: float
    ms: float
    items: list[str]
    advice: str
    field: str = ""


class ItemFinding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One item, or several related ones.

    Attributes:
        items: Their ids.
        found: How many searches found the first one.
        advice: What to do.
    """

    items: list[str]
    found: int
    advice: str


class StaleSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An outdated source; ``seen`` is the time of its last whole scan, in Unix seconds."""

    source: str
    state: str
    seen: float
    advice: str


class Insights(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the recorded usage says about the catalogue."""

    since: Annotated[
        float, Meta(description="The time of the first event, in Unix seconds; 0 without events.")
    ]
    searches: Annotated[int, Meta(description="The recorded searches.")]
    callers: int
    without_results: Annotated[int, Meta(description="Searches that found nothing.")]
    without_use: Annotated[
        int,
        Meta(
            description="Searches with results of which the caller neither read nor called one "
            "within ten minutes. Newer searches do not count yet."
        ),
    ]
    uses: Annotated[int, Meta(description="Items that were read or called.")]
    lost: Annotated[int, Meta(description="Events that could not be recorded.")]
    recording: Annotated[
        str, Meta(description="The setting `insights.record`: `off`, `hashed` or `plain`.")
    ]
    median_ms: float
    slow_ms: Annotated[float, Meta(description="19 of 20 searches took at most this long.")]
    unanswered: Annotated[list[SearchFinding], Meta(description="Searches that found nothing.")]
    unused: Annotated[
        list[SearchFinding], Meta(description="Searches whose results were not used.")
    ]
    never_found: Annotated[list[ItemFinding], Meta(description="Items that no search found.")]
    never_used: Annotated[
        list[ItemFinding], Meta(description="Items that searches found but that were not used.")
    ]
    alike: Annotated[list[ItemFinding], Meta(description="Items that are hard to tell apart.")]
    shadowed: Annotated[
        list[ItemFinding], Meta(description="Skills, each with the one that takes precedence.")
    ]
    stale: Annotated[list[StaleSource], Meta(description="Sources that are not up to date.")]
    slow: Annotated[list[SearchFinding], Meta(description="Slow searches.")]
    totals: Annotated[dict[str, int], Meta(description="The full lengths of the lists, by name.")]


class UnansweredQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A query that found nothing, for a labelled set.

    Attributes:
        query: The query.
        searches: How often it was searched.
        used: The items that its callers used soon afterwards, most frequent first.
        nearest: The best item below the threshold; empty if there is no item.
    """

    query: str
    searches: int
    used: list[str]
    nearest: str


class UnansweredQueries(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Queries that found nothing, most frequent first; ``total`` includes those left out."""

    queries: list[UnansweredQuery]
    total: int
