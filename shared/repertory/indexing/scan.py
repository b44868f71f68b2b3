"""Scans the sources."""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from repertory.errors import InputNeededError, SignInError, SourceError
from repertory.sources.source import Change, Scan, Source
from repertory.text import clean

_log = logging.getLogger(__name__)

CONCURRENCY = 16  # sources scanned at a time; most of them wait for a server


class ScanResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of scanning one source: a scan, or the error that prevented it.

    Attributes:
        awaits_sign_in: Whether the source's server asks for a sign-in.
        awaits_input: Whether the source's server needs a value from its user.
        is_known: Whether the items are those known from the last command, without asking the
            server.
    """

    source: Source
    scan: Scan | None
    error: str
    at: float
    is_known: bool = False
    awaits_sign_in: bool = False
    awaits_input: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether anything in the source was unreadable."""
        return self.scan is None or bool(self.scan.unread or self.scan.unread_under)

    @property
    def is_whole(self) -> bool:
        """Whether every item of the source was read."""
        return not (self.scan is None or self.is_partial or self.scan.unchanged)

    def keeps(self, item_id: str) -> bool:
        """Whether an item that the scan did not return may still exist."""
        return self.scan is None or self.scan.keeps(item_id)


class ChangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in a source since its last scan."""

    source: Source
    change: Change
    at: float


SourceResult = ScanResult | ChangeResult


def scan_source(source: Source, *, refresh: bool = False) -> ScanResult:
    """Scan one source. A failure is returned as a result.

    Args:
        source: The source.
        refresh: Whether to first fetch its content from elsewhere, which may take minutes.
    """
    at = time.time()
    try:
        if refresh:
            with contextlib.suppress(SourceError):  # the scan reports it
                source.refresh()
            at = time.time()
        scan = source.scan()
        return ScanResult(source=source, scan=scan, error=scan.stale, at=at)
    except SourceError as error:
        return ScanResult(
            source=source,
            scan=None,
            error=clean(str(error)),  # it may contain a path that is not valid Unicode
            at=at,
            awaits_sign_in=isinstance(error, SignInError),
            awaits_input=isinstance(error, InputNeededError),
        )
    # A bug in one source must not end the scans of the others.
    except Exception:
        _log.exception("scan_failed", extra={"source": source.name})
        fault = f"The source {source.name} could not be read because of a fault; see the log."
        return ScanResult(source=source, scan=None, error=fault, at=at)


def scan_all(sources: Sequence[Source], done: Callable[[], None]) -> list[ScanResult]:
    """Scan all sources concurrently; a failing one does not stop the others.

    Args:
        sources: The sources, in the catalogue's order.
        done: Called after each scan.

    Returns:
        The results, in the same order.
    """

    def one(source: Source) -> ScanResult:
        try:
            return scan_source(source)
        finally:
            done()

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        try:
            return list(pool.map(one, sources))
        except BaseException:  # Ctrl-C
            for source in sources:
                source.cancel()
            raise
