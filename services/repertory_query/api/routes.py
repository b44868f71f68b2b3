"""All operations of the HTTP API."""

from collections.abc import Callable

from repertory.values import Values
from repertory_query.access.callers import Access
from repertory_query.api import (
    calling,
    functions,
    insights,
    items,
    jobs,
    reviews,
    runtime,
    searching,
    state,
)
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import AuditedRoute
from repertory_query.records.metrics import Metrics


def routes(
    service: Service,
    searches: AnsweredSearches,
    pool: Pool,
    calls: Pool,
    access: Access,
    defaults: Callable[[], Values],
    metrics: Metrics,
) -> list[AuditedRoute]:
    """The routes, without a version.

    Args:
        service: The running server.
        searches: Answers queries.
        pool: The threads for blocking calls other than searches.
        calls: The threads for calls of tools.
        access: Access control, which knows the URL of this server and can prove its identity.
        defaults: Returns the settings for missing parameters of a search.
        metrics: The metrics for Prometheus.
    """
    return [
        *searching.routes(searches, defaults, access),
        *functions.routes(service, searches.pool),
        *runtime.routes(service, pool, access),
        *calling.routes(service, calls),
        *items.routes(service, pool),
        *state.routes(service, pool, metrics, access),
        *jobs.routes(service, pool),
        *reviews.routes(service.parts.reviews, pool),
        *insights.routes(service, pool),
    ]
