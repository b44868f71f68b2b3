"""Sends the daily digest of the usage to the webhook, while an application runs."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from starlette.applications import Starlette

from repertory.errors import RepertoryError
from repertory.insights import insights_of
from repertory.usage.digest import check_webhook, send_due
from repertory.usage.store import DAY_S
from repertory_query.pool import Pool
from repertory_query.service import Service

FIRST_S = 60.0  # after the start, when the index usually answers
INTERVAL_S = 3_600.0  # between two attempts

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

_log = logging.getLogger(__name__)


def with_digests(lifespan: Lifespan, service: Service, url: str | None, pool: Pool) -> Lifespan:
    """A lifespan that also sends digests; the same one without a webhook.

    Args:
        lifespan: What runs as long as the application.
        service: The server.
        url: The webhook.
        pool: The threads that a digest is made and sent on.

    Raises:
        ConfigurationError: The URL is invalid.
    """
    if not url:
        return lifespan
    check_webhook(url)

    def attempt() -> bool:
        since = time.time() - DAY_S
        return send_due(url, service.parts.usage, lambda: insights_of(service, since))

    async def run() -> None:
        await anyio.sleep(FIRST_S)
        while True:
            try:
                if await pool.run(attempt):
                    _log.info("digest_sent")
            except RepertoryError as error:
                _log.warning("digest_not_sent", extra={"reason": str(error)})
            # A boundary: a digest that fails must not end the server.
            except Exception:
                _log.exception("digest_failed")
            await anyio.sleep(INTERVAL_S)

    @asynccontextmanager
    async def both(app: Starlette) -> AsyncIterator[None]:
        async with lifespan(app), anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            yield
            tasks.cancel_scope.cancel()

    return both
