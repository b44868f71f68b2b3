"""Records usage in the background."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cachetools import LRUCache

from repertory.errors import StoreError
from repertory.search.answer import Answer
from repertory.search.query import continues
from repertory.system.background_writer import BackgroundWriter
from repertory.usage.events import Event, LostEvents, Search, search_of, use_of
from repertory.usage.store import UsageStore

MAX_WAITING = 1_000  # pending events; further ones are counted as lost
MAX_CALLERS = 1_000  # callers whose last typed search is remembered
# Events within this time are written together, because each write waits for the disk.
PAUSE_S = 1.0

Making = Callable[[bytes], Event]  # makes an event, given the key of the digests


class UsageRecorder:
    """Records the usage of one catalogue. Thread-safe; never fails and never waits for the disk.

    Args:
        store: Where the events are stored; None records nothing.
        has_queries: Whether to store queries as text, not only as digests.
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
        # The last typed search of each caller. Used on the writer's thread only.
        self._typed: LRUCache[str, tuple[float, str]] = LRUCache(MAX_CALLERS)

    def searched(
        self, caller: str, answer: Answer, seconds: float, *, is_typed: bool = False
    ) -> None:
        """Record a search.

        Args:
            caller: Who searched.
            answer: The answer.
            seconds: How long it took.
            is_typed: Whether a page sent it while the query was being typed.
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
        """Write events. Returns how many were written, and the error if any."""
        assert self._store is not None
        try:
            self._secret = self._secret or self._store.secret()
            events = [making(self._secret) for making in makings]
            more = [LostEvents(at=self._now(), count=lost)] if lost else []
            self._store.append([*more, *events])
        except StoreError as error:
            return 0, str(error)
        return len(makings), ""

    def _search(
        self, answer: Answer, at: float, caller: str, seconds: float, secret: bytes, is_typed: bool
    ) -> Search:
        if not is_typed:  # the caller's next typed search cannot continue an older one
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
        """Whether a search continues the caller's last typed one."""
        last_at, last = self._typed.pop(caller, (0.0, ""))
        self._typed[caller] = at, query
        return bool(last) and continues(query, at, last, last_at)
