"""Batches queries from concurrent threads."""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from typing_extensions import override

from repertory.embedding.engine import EmbeddingEngine, Vectors

MAX_BATCH = 32  # queries per run; the rest wait for a later run


class _Query:
    """A waiting query. Its thread receives a vector, or None if it must make the next run."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.turn: Future[Vectors | None] = Future()


class BatchingEngine(EmbeddingEngine):
    """Embeds queries from several threads together, in as few runs as possible.

    A query that arrives while a run is free is embedded at once, on its own thread. Other queries
    wait. When a run becomes free, the oldest waiting query embeds the waiting queries in one batch.

    Args:
        engine: The engine that embeds the texts.
        runs: The maximum number of concurrent runs, one per available core.
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
        """Wait for the query's vector; None if it must make the next run.

        If the wait is interrupted, for example by Ctrl-C, another waiting query gets the turn.
        """
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
        """Embed a query together with waiting ones, and pass each of those its vector."""
        others = self._taken()
        try:
            vectors = self._engine.embed_queries([query.text, *(other.text for other in others)])
        except BaseException as error:  # any error, so that no thread is left waiting
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
        """Let the oldest waiting query make the next run, or mark the run as free."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().turn.set_result(None)
            else:
                self._free += 1
