"""Records usage beside the requests: a bounded number of events waits for a thread that writes."""

import atexit
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from repertory.errors import StoreError
from repertory.search.answer import Answer
from repertory.usage.events import Event, Lost, Search, search_of, use_of
from repertory.usage.store import UsageStore

MAX_WAITING = 1_000  # requests that wait for the disk; the next ones are counted as lost
MAX_CALLERS = 1_000  # whose last search is remembered
TYPING_S = 5.0  # within it, a longer or shorter beginning is the same search being typed
IDLE_S = 5.0  # after which the thread ends
PAUSE_S = (
    1.0  # between two writes: each waits for the disk, and takes as long as a part of a search
)
FLUSH_TIMEOUT_S = 5.0  # at the end of the process

_log = logging.getLogger(__name__)

Making = Callable[[bytes], Event]  # makes an event with the key of the digests


class UsageRecorder:
    """Records the usage of one catalogue. Thread-safe; it never fails, and waits for no disk.

    Args:
        store: Where the events are kept; None records nothing.
        has_queries: Whether queries are kept as text, and not only as digests.
        now: The time of day, in Unix seconds.

    Attributes:
        trouble: Why the last events could not be written; empty if they were.
    """

    def __init__(
        self,
        store: UsageStore | None,
        *,
        has_queries: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.trouble = ""
        self._store = store
        self._has_queries = has_queries
        self._now = now
        self._waiting: deque[Making] = deque()
        self._lost = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_writing = False
        self._is_flushing = False
        self._secret = b""
        self._typed: OrderedDict[str, tuple[float, str]] = OrderedDict()  # of the writing thread

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

    def flush(self, seconds: float = FLUSH_TIMEOUT_S) -> bool:
        """Wait until all events are written; whether they were."""
        with self._changed:
            self._is_flushing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._waiting or self._is_writing), seconds)
            self._is_flushing = False
            return not (self._waiting or self._is_writing or self.trouble)

    def _add(self, making: Making) -> None:
        if self._store is None:
            return
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                self._lost += 1
                return
            self._waiting.append(making)
            if self._thread is None:
                # A daemon: a disk that hangs must not keep the process.
                self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
                self._thread.start()
                atexit.register(self.flush)
            if len(self._waiting) == 1 or self._is_due():
                self._changed.notify_all()

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                if not self._changed.wait_for(lambda: self._waiting, IDLE_S):
                    self._thread = None
                    atexit.unregister(self.flush)
                    return
                self._changed.wait_for(self._is_due, pause)
                makings, self._is_writing = list(self._waiting), True
                self._waiting.clear()
                lost, self._lost = self._lost, 0
            trouble, pause = self._write(makings, lost), PAUSE_S
            with self._changed:
                if trouble:
                    self._lost += lost + len(makings)
                    if not self.trouble:
                        _log.warning("usage_not_written", extra={"reason": trouble})
                self.trouble = trouble

    def _is_due(self) -> bool:
        """Whether to write before the pause has passed."""
        return self._is_flushing or 2 * len(self._waiting) > MAX_WAITING

    def _write(self, makings: Sequence[Making], lost: int) -> str:
        """Write events; why that failed, if it did."""
        assert self._store is not None
        try:
            self._secret = self._secret or self._store.secret()
            events = [making(self._secret) for making in makings]
            more = [Lost(at=self._now(), count=lost)] if lost else []
            self._store.append([*more, *events])
        except StoreError as error:
            return str(error)
        # The boundary: what fails here must end neither the thread nor a request.
        except Exception as error:
            _log.exception("usage_not_recorded")
            return f"{type(error).__name__}: {error}"
        return ""

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
        if len(self._typed) > MAX_CALLERS:
            self._typed.popitem(last=False)
        is_typed = query.startswith(last) or last.startswith(query)
        return bool(last) and is_typed and abs(at - last_at) < TYPING_S
