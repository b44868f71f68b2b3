"""What was searched for lately: a few lines in memory, for those who run the server."""

import threading
import time
from collections import deque

import msgspec

from repertory.search.answer import Mode

MOST = 50
TYPING = 5.0  # seconds within which a longer or shorter beginning is the same search being typed


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

    They are written nowhere, neither to disk nor to the log: what people look for is theirs.
    """

    def __init__(self) -> None:
        self._searches: deque[Search] = deque(maxlen=MOST)
        self._lock = threading.Lock()

    def note(self, query: str, hits: int, mode: Mode, seconds: float) -> None:
        """Note a search. What is being typed is one search, not one for each letter."""
        search = Search(
            at=time.time(), query=query.strip(), hits=hits, mode=mode, ms=seconds * 1_000
        )
        with self._lock:
            if self._searches and _continues(search, self._searches[-1]):
                self._searches.pop()
            self._searches.append(search)

    def newest_first(self) -> list[Search]:
        """The searches that are remembered."""
        with self._lock:
            return list(reversed(self._searches))


def _continues(search: Search, last: Search) -> bool:
    new, old = search.query, last.query
    return search.at - last.at < TYPING and (new.startswith(old) or old.startswith(new))
