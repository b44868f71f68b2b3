"""Embeds waiting queries together."""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from typing_extensions import override

from repertory.embedding.engine import EmbeddingEngine, Vectors

MAX_BATCH = 32  # queries per run; later queries wait until it ends


class _Query:
    """A waiting query; its thread receives its vector, or None, which means: make the next run."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.turn: Future[Vectors | None] = Future()


class BatchingEngine(EmbeddingEngine):
    """Embeds the queries of several threads in few runs.

    A query that comes while a run is free is embedded at once, on its own thread. Other queries
    wait; the first of them embeds them all as soon as a run is free.

    Args:
        engine: The engine that embeds.
        runs: The number of concurrent runs, one for each core that they may use.
    """

    def __init__(self, engine: EmbeddingEngine, runs: int = 1) -> None:
        self._engine = engine
        self.model, self.device, self.batch = engine.model, engine.device, engine.batch
        self.files = engine.files
        self._free = runs
        self._waiting: deque[_Query] = deque()  # empty while a run is free
        self._lock = threading.Lock()

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self._engine.embed_texts(texts)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._engine.embed_queries(texts)

    @override
    def embed_query(self, text: str) -> Vectors:
        query = _Query(text)
        with self._lock:
            waits = not self._free
            if waits:
                self._waiting.append(query)
            else:
                self._free -= 1
        if waits and (vector := self._waited(query)) is not None:
            return vector
        return self._run(query)

    def _waited(self, query: _Query) -> Vectors | None:
        """Wait for a query's turn; an interrupted one, as by Ctrl-C, leaves its turn to others."""
        try:
            return query.turn.result()
        except BaseException:
            with self._lock:
                if query in self._waiting:
                    self._waiting.remove(query)
                    raise
            if query.turn.done() and not query.turn.exception() and query.turn.result() is None:
                self._pass_on()
            raise

    def _run(self, query: _Query) -> Vectors:
        """Embed a query and those that wait, and pass each of these its vector."""
        others = self._taken()
        try:
            vectors = self._engine.embed_queries([query.text, *(other.text for other in others)])
        except BaseException as error:  # any error: no thread may be left waiting
            for other in others:
                other.turn.set_exception(error)
            raise
        finally:
            self._pass_on()
        for other, vector in zip(others, vectors[1:], strict=True):
            other.turn.set_result(vector)
        own: Vectors = vectors[0]
        return own

    def _taken(self) -> list[_Query]:
        with self._lock:
            count = min(len(self._waiting), MAX_BATCH - 1)
            return [self._waiting.popleft() for _ in range(count)]

    def _pass_on(self) -> None:
        """Let the query that has waited longest make the next run."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().turn.set_result(None)
            else:
                self._free += 1
