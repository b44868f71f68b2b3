"""Maintenance requests, which workers do beside jobs. Failed ones are listed."""

import contextlib
import logging
import re
import time
from collections.abc import Iterable

from repertory.coordination.failures import Failure, Failures
from repertory.coordination.ports import Coordination
from repertory.errors import RepertoryError, StoreError, StoreRefusedError
from repertory.index.vectors import VectorStore
from repertory.indexing.attempts import MAX_ATTEMPTS
from repertory.indexing.job import JobQueue
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.writer import Writer

# The pause after the last step of a failed attempt. It doubles each time, up to ``MAX_PAUSE_S``.
PAUSE_S = 300.0
MAX_PAUSE_S = 3_600.0

_REBUILD = re.compile(r"begin:([0-9a-f]{16}):(\d{1,9})")  # a configuration and a generation

_log = logging.getLogger(__name__)


def begin(
    configuration: str, generation: int | None, *, writer: Writer, failures: Failures
) -> None:
    """Do a request of ``JobQueue.begin``; if the store refuses it, add it to the failures.

    Raises:
        StoreError: A store or the model is unavailable; the same request can be done later.
    """
    # A rebuild has its own name, because other requests may succeed while it fails.
    name = f"begin:{configuration}" + (f":{generation}" if generation is not None else "")
    try:
        writer.begin(configuration, generation)
    except StoreRefusedError as error:
        _fail(name, "", str(error), 1, failures)
    else:
        failures.remove([name])


def keep_keywords(collection: str, *, store: VectorStore, coordination: Coordination) -> None:
    """Do a request of ``JobQueue.keep_keywords``, unless it failed recently.

    A snapshot only saves time, so nothing waits for it. The pause after a failed attempt grows,
    also if the attempt killed its worker. After ``MAX_ATTEMPTS``, or once the store refuses it, the
    request is listed as failed, with the reason.

    Raises:
        StoreError: The claims or the failures are unavailable.
    """
    name, claims, failures = _snapshot(collection), coordination.claims, coordination.failures
    if not claims.take([name], PAUSE_S):
        return  # another worker does it, or it failed recently
    tried = failures.attempt(name)
    doublings = min(tried - 1, 10)  # avoids an overflow after very many attempts
    pause = min(PAUSE_S * 2.0**doublings, MAX_PAUSE_S)

    def renew() -> None:
        with contextlib.suppress(StoreError):  # the next step renews the claim
            claims.release([name])
            claims.take([name], pause)

    renew()
    if tried > MAX_ATTEMPTS:
        ended = "The process that stored it was killed each time; it may need more memory."
        _fail(name, collection, ended, tried - 1, failures)
    try:
        if collection in store.collections():
            with store.open(collection) as opened:
                KeywordFeed(opened, coordination).keep(renew)
    except (RepertoryError, MemoryError) as error:
        reason = str(error) or "There is not enough memory."
        _log.warning("snapshot_failed", extra={"collection": collection, "error": reason})
        if tried >= MAX_ATTEMPTS or isinstance(error, StoreRefusedError):
            _fail(name, collection, reason, tried, failures)
    else:
        failures.remove([name])
        failures.forget([name])
        claims.release([name])


def interrupt(collection: str, coordination: Coordination) -> None:
    """Record that ``keep_keywords`` was stopped with its worker, so that it does not count."""
    with contextlib.suppress(StoreError):
        _end_pause(collection, coordination)


def request_again(failed: Iterable[Failure], queue: JobQueue, coordination: Coordination) -> None:
    """Request failed snapshots and rebuilds again, which nothing else would do soon.

    The pause of a snapshot is skipped.

    Raises:
        StoreError: The queue or the failures are unavailable.
    """
    for one in failed:
        if one.id == _snapshot(one.collection):
            _end_pause(one.collection, coordination)
            queue.keep_keywords(one.collection)
        elif rebuild := _REBUILD.fullmatch(one.id):
            queue.begin(rebuild[1], int(rebuild[2]))


def _end_pause(collection: str, coordination: Coordination) -> None:
    """End the pause of a snapshot for all processes, so that its next request is done at once."""
    coordination.failures.forget([_snapshot(collection)])
    coordination.claims.end([_snapshot(collection)])


def _snapshot(collection: str) -> str:
    return f"snapshot:{collection}"


def _fail(name: str, collection: str, error: str, tried: int, failures: Failures) -> None:
    """Add a request to the list of failures."""
    failure = Failure(
        id=name,
        collection=collection,
        items={},
        error=error,
        at=time.time(),
        attempts=tried,
        is_request=True,
    )
    _log.error("request_failed", extra={"request": name, "attempt": tried, "error": error})
    failures.add(failure)
