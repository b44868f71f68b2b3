"""A cache of answers, for as long as they would be the same."""

from typing import NamedTuple

from cachetools import LRUCache

from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.query import Query

MAX_BYTES = 16_000_000


class Encoded(NamedTuple):
    """An answer and its JSON."""

    answer: Answer
    content: bytes


Key = tuple[Query, frozenset[str] | None]  # the query, and ``visible.visibility``


class AnswerCache:
    """Answers by the whole query and by what its callers may see; evicts the oldest used.

    They are the answers of one search engine, which never changes: another engine is another
    version of the index, and starts with an empty cache. For one thread.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._engine: SearchEngine | None = None
        self._answers: LRUCache[Key, Encoded] = LRUCache(max_bytes, _size)

    def get(self, engine: SearchEngine, key: Key) -> Encoded | None:
        """The cached answer of an engine, if any."""
        return self._answers.get(key) if engine is self._engine else None

    def put(self, engine: SearchEngine, key: Key, found: Encoded) -> None:
        """Keep the answer of an engine; one that is too large for the cache is not kept."""
        if engine is not self._engine:
            self._engine = engine
            self._answers.clear()
        if _size(found) <= self._answers.maxsize:
            self._answers[key] = found


def _size(one: Encoded) -> int:
    return len(one.content)
