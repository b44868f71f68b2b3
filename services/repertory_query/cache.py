"""A cache of answers, for as long as they would be the same."""

from collections import OrderedDict
from typing import NamedTuple

from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.query import Query

MAX_BYTES = 32_000_000


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
        self._max = max_bytes
        self._engine: SearchEngine | None = None
        self._answers: OrderedDict[Key, Encoded] = OrderedDict()
        self._bytes = 0

    def get(self, engine: SearchEngine, key: Key) -> Encoded | None:
        """The cached answer of an engine, if any."""
        found = self._answers.get(key) if engine is self._engine else None
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, engine: SearchEngine, key: Key, found: Encoded) -> None:
        """Keep the answer of an engine."""
        if engine is not self._engine:
            self._engine, self._bytes = engine, 0
            self._answers.clear()
        if old := self._answers.pop(key, None):
            self._bytes -= len(old.content)
        self._bytes += len(found.content)
        self._answers[key] = found
        while self._bytes > self._max:
            self._bytes -= len(self._answers.popitem(last=False)[1].content)
