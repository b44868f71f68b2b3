"""Answers queries from a cache, while the answer would be the same, or by a search."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from repertory.formats.rendering import Format, FormatOptions, Rendered, render
from repertory.search.answer import Answer, Mode
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory_query.access.callers import Caller
from repertory_query.backend.caller_view import visibility, visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.metrics import Metrics

MAX_BYTES = 16_000_000  # size of the cache
CONCURRENCY = 8  # queries of one request, so that other such requests are answered, too


class EncodedAnswer(NamedTuple):
    """An answer and its JSON."""

    answer: Answer
    content: bytes


Key = tuple[Query, frozenset[str] | None]  # the query, and ``caller_view.visibility``


class AnswerCache:
    """An LRU cache of answers by the whole query and the sources that the caller may see.

    It holds the answers of one search engine. An engine never changes: another one means another
    version of the index, and starts with an empty cache. For use by one thread.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._engine: SearchEngine | None = None
        self._answers: LRUCache[Key, EncodedAnswer] = LRUCache(max_bytes, _size)

    def get(self, engine: SearchEngine, key: Key) -> EncodedAnswer | None:
        """The cached answer of an engine, if any."""
        return self._answers.get(key) if engine is self._engine else None

    def put(self, engine: SearchEngine, key: Key, found: EncodedAnswer) -> None:
        """Keep the answer of an engine, unless it is too large for the cache."""
        if engine is not self._engine:
            self._engine = engine
            self._answers.clear()
        if _size(found) <= self._answers.maxsize:
            self._answers[key] = found


def _size(one: EncodedAnswer) -> int:
    return len(one.content)


class AnsweredSearches:
    """Answers queries from the cache or on a thread.

    Args:
        service: Searches.
        pool: The threads for requests with one query.
        batches: The threads for requests with several, which delay those with one less.
        metrics: Counts the searches.

    Attributes:
        pool: The threads for requests with one query.
    """

    def __init__(self, service: Service, pool: Pool, batches: Pool, metrics: Metrics) -> None:
        self._service = service
        self.pool = pool
        self._batches = batches
        self._metrics = metrics
        self._cache = AnswerCache()

    async def answer(self, query: Query, caller: Caller) -> EncodedAnswer:
        """The answer to a query, as a caller sees it.

        Raises:
            HTTPException: 503 if too many searches wait.
            UsageError: The query is invalid.
            StoreError: Nothing can be searched now.
        """
        return await self._answer(query, caller, self.pool)

    async def _answer(self, query: Query, caller: Caller, pool: Pool) -> EncodedAnswer:
        if not self._service.is_ready:  # the cache needs an engine
            await pool.run(self._service.await_first_index)
        engine = self._service.engine
        backend = visible_to(caller, self._service)
        key = query, visibility(caller, self._service)
        began = time.perf_counter()
        if known := self._cache.get(engine, key):
            self._metrics.cached()
            self._service.note(known.answer, time.perf_counter() - began)
            return known

        def search() -> EncodedAnswer:
            answer = backend.search(query)
            return EncodedAnswer(answer, msgspec.json.encode(answer))

        found = await pool.run(search)
        self._metrics.search(found.answer.mode)
        is_current = engine is self._service.engine  # else it would evict newer answers
        if is_current and not found.answer.degraded:  # the other arm may soon be back
            self._cache.put(engine, key, found)
        return found

    async def rendered(
        self, query: Query, caller: Caller, form: Format, options: FormatOptions
    ) -> tuple[Rendered, Mode]:
        """The answer in a format, never from the cache, and its mode; raises as ``answer``."""
        backend = visible_to(caller, self._service)

        def search() -> tuple[Rendered, Mode]:
            answer = backend.search(query)
            return render(form, answer, backend.items, options), answer.mode

        found, mode = await self.pool.run(search)
        self._metrics.search(mode)
        return found, mode

    async def answers(self, queries: Sequence[Query], caller: Caller) -> list[EncodedAnswer]:
        """The answers to several queries, in their order; see ``answer``."""
        found: list[EncodedAnswer] = []
        for start in range(0, len(queries), CONCURRENCY):
            some = queries[start : start + CONCURRENCY]
            found += await asyncio.gather(
                *(self._answer(query, caller, self._batches) for query in some)
            )
        return found

    async def explanation(self, query: Query, item: str, caller: Caller) -> Explanation:
        """Why a search shows an item, or why not; UnknownItemError if there is no such item."""
        backend = visible_to(caller, self._service)
        return await self.pool.run(lambda: backend.explain(query, item))
