"""The pages of those who run the server: its state, reviews, policies and keys."""

from starlette.routing import BaseRoute

from repertory.keys import Keys
from repertory_query.access import Access
from repertory_query.pages import keys as key_pages
from repertory_query.pages import policies, review, status
from repertory_query.pool import Pool
from repertory_query.service import Service


def routes(service: Service, pool: Pool, keys: Keys, access: Access) -> list[BaseRoute]:
    """The routes; all but the state need the scope ``admin``.

    Args:
        service: The running server.
        pool: The threads of blocking calls.
        keys: The keys that it accepts.
        access: Access control, to say who needs a key.
    """
    return [
        *status.routes(service, pool),
        *review.routes(service, pool),
        *policies.routes(service, pool),
        *key_pages.routes(service, pool, keys, access),
    ]
