"""One watch service of a namespace leads: it takes the lease and renews it; the others wait."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from repertory.coordination.lease import Holder, Lease
from repertory.errors import StoreError

RENEWAL_INTERVAL_S = 2.0
RETRY_INTERVAL_S = 1.0  # for a waiting service

T = TypeVar("T")

_log = logging.getLogger(__name__)


def wait(lease: Lease, about: Holder, stop: threading.Event, begin: Callable[[], T]) -> T | None:
    """Wait until this process has the lease and can begin; None if ``stop`` was set before.

    Each reason is logged once.

    Args:
        lease: The lease.
        about: This process.
        stop: Set when the process has to end.
        begin: Called with the lease; its result is returned. A ``StoreError`` is a reason to wait.
    """
    said = ""
    while not stop.is_set():
        try:
            if lease.take(about):
                begun = begin()
                _log.info("lease_taken")
                return begun
            holder = lease.holders().holder
            reason = f"{holder} watches already" if holder else said
        except StoreError as error:
            reason = str(error)
        if reason != said:
            said = reason
            _log.warning("watch_waits", extra={"reason": reason})
        stop.wait(RETRY_INTERVAL_S)
    with suppress(StoreError):
        lease.release()
    return None


@contextmanager
def leading(
    lease: Lease, about: Callable[[], Holder], stop: threading.Event
) -> Iterator[threading.Event]:
    """Keep a lease, on a thread of its own, and release it at the end.

    Args:
        lease: The lease, which this process has.
        about: Describes this process.
        stop: Set when the process has to end.

    Yields:
        An event, which is set when ``stop`` is set or the lease is lost.
    """
    ended = threading.Event()

    def renew() -> None:
        said = ""
        try:
            while not stop.wait(RENEWAL_INTERVAL_S) and not ended.is_set():
                try:
                    if not lease.take(about()):
                        _log.warning("lease_lost")
                        break
                    said = ""
                except StoreError as error:  # the coordinator does nothing after ``LEASE_S``
                    if said != str(error):
                        said = str(error)
                        _log.warning("lease_not_renewed", extra={"error": said})
        # A boundary: the watch must end and start again, instead of watching without the lease.
        except Exception:
            _log.exception("lease_failed")
        finally:
            ended.set()

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        ended.set()
        thread.join()
        with suppress(StoreError):
            lease.release()
