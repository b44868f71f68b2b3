"""All operations of the HTTP API."""

from collections.abc import Callable

from repertory.values import Values
from repertory_query.access import Access
from repertory_query.actions import AuditedRoute
from repertory_query.answering import AnsweredSearches
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
from repertory_query.metrics import Metrics
from repertory_query.pool import Pool
from repertory_query.service import Service


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
        pool: The threads of blocking calls that are no searches.
        calls: The threads of calls of tools.
        access: Access control, to name the address and to prove whose server this is.
        defaults: Returns the settings for missing parameters of a search.
        metrics: What Prometheus asks for.
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
