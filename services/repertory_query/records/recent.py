"""The searches of this process, in memory: the latest ones, and counters in total and by key."""

import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from repertory.search.answer import Answer, Mode
from repertory.search.query import continues
from repertory.system.logs import CALLER

MAX_SEARCHES = 50
MAX_NAMES = 100  # keys counted separately; the searches of others are counted together
OTHERS = "others"

# The upper bounds of the duration buckets, in seconds.
BOUNDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search.

    Attributes:
        at: When, in seconds since the epoch.
        hits: The number of items that it found.
        ms: Its duration in milliseconds.
    """

    at: float
    query: str
    hits: int
    mode: Mode
    ms: float


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The answered searches since the start of the process, over every face.

    Attributes:
        searches: Their number; each letter of a query being typed counts here.
        empty: The number of those without results.
        seconds: Their total duration.
        durations: The number of searches in each bucket of ``BOUNDS``; the last number counts those
            above all bounds.
    """

    searches: int = 0
    empty: int = 0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)


class RecentSearches:
    """The latest searches of this process, and the counts of all. Thread-safe.

    They are kept only in memory, not on disk or in the log, because queries are private.
    """

    def __init__(self) -> None:
        self._searches: deque[Search] = deque(maxlen=MAX_SEARCHES)
        self._empty = 0
        self._seconds = 0.0
        self._durations = [0] * (len(BOUNDS) + 1)
        self._by_caller: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, answer: Answer, seconds: float) -> None:
        """Record a search. In the list, a query being typed replaces its earlier letters."""
        search = Search(
            at=time.time(),
            query=answer.query.strip(),
            hits=answer.total_results,
            mode=answer.mode,
            ms=seconds * 1_000,
        )
        name = _name(CALLER.get())
        with self._lock:
            is_known = name in self._by_caller or len(self._by_caller) < MAX_NAMES
            self._by_caller[name if is_known else OTHERS] += 1
            last = self._searches[-1] if self._searches else None
            if last and continues(search.query, search.at, last.query, last.at):
                self._searches.pop()
            self._searches.append(search)
            self._empty += not search.hits
            self._seconds += seconds
            self._durations[bisect_left(BOUNDS, seconds)] += 1

    def counts(self) -> Counts:
        """The counts of searches since the start."""
        with self._lock:
            return Counts(
                searches=sum(self._durations),
                empty=self._empty,
                seconds=self._seconds,
                durations=tuple(self._durations),
            )

    def by_caller(self) -> Mapping[str, int]:
        """The number of searches since the start, by key.

        People who signed in are counted as ``people``, callers without a key as ``anonymous``, and
        the user who started the server as ``owner``. Keys have the prefix ``key:``, so these names
        are unique.
        """
        with self._lock:
            return dict(self._by_caller)

    def newest_first(self) -> list[Search]:
        """The latest searches, newest first."""
        with self._lock:
            return list(reversed(self._searches))


def _name(who: str) -> str:
    """The name under which a caller's searches are counted; ``Caller.who`` has too many values."""
    kind, _, _ = who.partition(":")
    if kind in ("key", "owner"):
        return who
    return "people" if kind == "user" else "anonymous"
