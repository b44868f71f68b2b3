"""Records usage beside the requests."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cachetools import LRUCache

from repertory.background_writer import BackgroundWriter
from repertory.errors import StoreError
from repertory.search.answer import Answer
from repertory.search.typed_queries import continues
from repertory.usage.events import Event, Lost, Search, search_of, use_of
from repertory.usage.store import UsageStore

MAX_WAITING = 1_000  # requests that wait for the disk; the next ones are counted as lost
MAX_CALLERS = 1_000  # whose last search is remembered
# Events that come within it are written together: each write waits for the disk, and takes as long
# as a part of a search.
PAUSE_S = 1.0

Making = Callable[[bytes], Event]  # makes an event with the key of the digests


class UsageRecorder:
    """Records the usage of one catalogue. Thread-safe; it never fails, and waits for no disk.

    Args:
        store: Where the events are kept; None records nothing.
        has_queries: Whether queries are kept as text, and not only as digests.
        now: The time of day, in Unix seconds.

    Attributes:
        flush: Waits until all events are written; see ``BackgroundWriter``.
    """

    def __init__(
        self,
        store: UsageStore | None,
        *,
        has_queries: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._has_queries = has_queries
        self._now = now
        file = store.path if store else Path()
        self._writer = BackgroundWriter("usage", file, self._write, MAX_WAITING, PAUSE_S)
        self.flush = self._writer.flush
        self._secret = b""
        self._typed: LRUCache[str, tuple[float, str]] = LRUCache(MAX_CALLERS)  # of its thread

    def searched(
        self, caller: str, answer: Answer, seconds: float, *, is_typed: bool = False
    ) -> None:
        """Record a search.

        Args:
            caller: Who searched.
            answer: The answer.
            seconds: How long it took.
            is_typed: Whether a page searches while the query is being typed.
        """
        at = self._now()
        self._add(lambda secret: self._search(answer, at, caller, seconds, secret, is_typed))

    def used(self, caller: str, items: Sequence[str]) -> None:
        """Record that a caller read or called items."""
        at = self._now()
        for item in dict.fromkeys(items):
            self._add(lambda _, item=item: use_of(item, at, caller))  # type: ignore[misc]  # the default

    def _add(self, making: Making) -> None:
        if self._store is not None:
            self._writer.add(making)

    def _write(self, makings: list[Making], lost: int) -> tuple[int, str]:
        """Write events; how many were written, and why not all of them."""
        assert self._store is not None
        try:
            self._secret = self._secret or self._store.secret()
            events = [making(self._secret) for making in makings]
            more = [Lost(at=self._now(), count=lost)] if lost else []
            self._store.append([*more, *events])
        except StoreError as error:
            return 0, str(error)
        return len(makings), ""

    def _search(
        self, answer: Answer, at: float, caller: str, seconds: float, secret: bytes, is_typed: bool
    ) -> Search:
        if not is_typed:  # it is the caller's previous one for a page that is typed in
            self._typed.pop(caller, None)
        return search_of(
            answer,
            at,
            caller,
            seconds,
            secret,
            has_query=self._has_queries,
            continues=is_typed and self._continues(caller, at, answer.query.strip()),
        )

    def _continues(self, caller: str, at: float, query: str) -> bool:
        """Whether a search continues the last one of its caller, which then was being typed."""
        last_at, last = self._typed.pop(caller, (0.0, ""))
        self._typed[caller] = at, query
        return bool(last) and continues(query, at, last, last_at)
