"""The last searches, in memory, for the people who run the server."""

import threading
import time
from collections import deque

import msgspec

from repertory.search.answer import Answer, Mode

MAX_SEARCHES = 50
TYPING_S = 5.0  # within it, a longer or shorter beginning is the same search being typed


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search.

    Attributes:
        at: When, in seconds since the epoch.
        hits: How many items it found.
        ms: How long it took, in milliseconds.
    """

    at: float
    query: str
    hits: int
    mode: Mode
    ms: float


class Recent:
    """The last searches of this process. Safe to share by threads.

    They are kept in memory only, neither on disk nor in the log: queries are private.
    """

    def __init__(self) -> None:
        self._searches: deque[Search] = deque(maxlen=MAX_SEARCHES)
        self._lock = threading.Lock()

    def note(self, answer: Answer, seconds: float) -> None:
        """Note a search. A query being typed is one search, not one for each letter."""
        search = Search(
            at=time.time(),
            query=answer.query.strip(),
            hits=answer.total_results,
            mode=answer.mode,
            ms=seconds * 1_000,
        )
        with self._lock:
            if self._searches and _continues(search, self._searches[-1]):
                self._searches.pop()
            self._searches.append(search)

    def newest_first(self) -> list[Search]:
        """The searches."""
        with self._lock:
            return list(reversed(self._searches))


def _continues(search: Search, last: Search) -> bool:
    new, old = search.query, last.query
    return search.at - last.at < TYPING_S and (new.startswith(old) or old.startswith(new))
