"""The answers to queries that were asked before, for as long as they would be the same."""

from collections import OrderedDict

from repertory.search.engine import SearchEngine
from repertory.search.query import Query

MOST_BYTES = 32_000_000


class AnswerCache:
    """Encoded answers by the whole query, the least recently used forgotten first.

    They are the answers of one search engine, which never changes: another one is another version
    of the index, and begins with none. For one thread.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._engine: SearchEngine | None = None
        self._answers: OrderedDict[Query, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, engine: SearchEngine, query: Query) -> bytes | None:
        """The answer that an engine gave to a query, if it is known."""
        answer = self._answers.get(query) if engine is self._engine else None
        if answer is not None:
            self._answers.move_to_end(query)
        return answer

    def put(self, engine: SearchEngine, query: Query, answer: bytes) -> None:
        """Keep what an engine answered."""
        if engine is not self._engine:
            self._engine, self._bytes = engine, 0
            self._answers.clear()
        self._bytes += len(answer) - len(self._answers.pop(query, b""))
        self._answers[query] = answer
        while self._bytes > self._most:
            self._bytes -= len(self._answers.popitem(last=False)[1])
