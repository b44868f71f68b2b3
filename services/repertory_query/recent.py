"""The searches of this process, in memory: the last ones, and how many there were, also by key."""

import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from repertory.logs import CALLER
from repertory.search.answer import Answer, Mode
from repertory.search.typed_queries import continues

MAX_SEARCHES = 50
MAX_NAMES = 100  # of keys; the searches of further ones are counted together
OTHERS = "others"

# The upper bounds of durations that are counted together, in seconds.
BOUNDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


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


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The answered searches since the start of the process, over every face.

    Attributes:
        searches: How many; each letter of a query being typed is one here.
        empty: Those without results.
        seconds: How long they took together.
        durations: How many took up to each of ``BOUNDS`` and longer than the bound before; the last
            number is of those above all bounds.
    """

    searches: int = 0
    empty: int = 0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)


class Recent:
    """The last searches of this process, and the counts of all. Safe to share by threads.

    They are kept in memory only, neither on disk nor in the log: queries are private.
    """

    def __init__(self) -> None:
        self._searches: deque[Search] = deque(maxlen=MAX_SEARCHES)
        self._empty = 0
        self._seconds = 0.0
        self._durations = [0] * (len(BOUNDS) + 1)
        self._by_caller: Counter[str] = Counter()
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
        """The searches since the start, for metrics."""
        with self._lock:
            return Counts(
                searches=sum(self._durations),
                empty=self._empty,
                seconds=self._seconds,
                durations=tuple(self._durations),
            )

    def by_caller(self) -> Mapping[str, int]:
        """The searches since the start, by the names of keys.

        People who signed in are ``people``, callers without a key ``anonymous``, and the user who
        started the server ``owner``. A key has the prefix ``key:``, so none has such a name.
        """
        with self._lock:
            return dict(self._by_caller)

    def newest_first(self) -> list[Search]:
        """The searches."""
        with self._lock:
            return list(reversed(self._searches))


def _name(who: str) -> str:
    """The name that the searches of a caller are counted by; ``Caller.who`` has many more."""
    kind, _, _ = who.partition(":")
    if kind in ("key", "owner"):
        return who
    return "people" if kind == "user" else "anonymous"
