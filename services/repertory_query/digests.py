"""Sends the daily usage digest to the webhook while an application runs."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from repertory.errors import RepertoryError
from repertory.insights import insights_of
from repertory.usage.digest import send_due
from repertory.usage.store import DAY_S
from repertory_query.pool import Pool
from repertory_query.service import Service

FIRST_S = 60.0  # after the start, when the index is usually ready
INTERVAL_S = 3_600.0  # between two attempts

_log = logging.getLogger(__name__)


@asynccontextmanager
async def sending_digests(url: str | None, service: Service, pool: Pool) -> AsyncIterator[None]:
    """Send a digest once a day.

    Args:
        url: The webhook; nothing is sent without one.
        service: The server.
        pool: The threads on which a digest is made and sent.
    """
    if not url:
        yield
        return

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
            # A boundary: a failed digest must not end the server.
            except Exception:
                _log.exception("digest_failed")
            await anyio.sleep(INTERVAL_S)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()
