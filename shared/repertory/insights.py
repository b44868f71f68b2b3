"""Reports on the usage of a catalogue: the recorded events, compared with the current items."""

import time

from msgspec.structs import replace

from repertory.local.backend import Local
from repertory.search.query import Query
from repertory.usage.labels import unanswered
from repertory.usage.report import report
from repertory.usage.wire import Insights, UnansweredQueries

MAX_PROPOSED = 200  # queries of a labelled set, each of which takes a search


def insights_of(local: Local, since: float = 0.0) -> Insights:
    """The report on the usage since a moment in Unix seconds.

    Raises:
        StoreError: The recorded usage or the items cannot be read.
    """
    return report(
        [event for event in local.parts.usage.read() if event.at >= since],
        local.entries(),
        local.stats().sources,
        recording=local.settings.values.insights_record,
        now=time.time(),
    )


def unanswered_of(local: Local) -> UnansweredQueries:
    """The queries that found nothing, each with the most similar current item.

    Raises:
        StoreError: As for ``insights_of``.
    """
    known = {entry.id for entry in local.entries()}
    has_queries = local.settings.values.insights_record == "plain"
    found = unanswered(local.parts.usage.read(), known) if has_queries else []
    return UnansweredQueries(
        queries=[replace(one, nearest=_nearest(local, one.query)) for one in found[:MAX_PROPOSED]],
        total=len(found),
    )


def _nearest(local: Local, query: str) -> str:
    """The id of the best item at any confidence; the search is not recorded."""
    answer = local.engine.search(Query(text=query, limit=1, threshold=0.0))
    return answer.hits[0].id if answer.hits else ""
