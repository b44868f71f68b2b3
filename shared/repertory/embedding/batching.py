"""Queries that wait at the same time are embedded together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Model

MOST_TOGETHER = 32  # queries of one run: whoever comes after them waits that long


class _Query:
    """A query whose thread waits for its vector, or for None: to make the next run itself."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.turn: Future[Vectors | None] = Future()


class BatchingEngine:
    """An engine whose queries, asked on several threads, are embedded in few runs.

    A query that comes while a run is free is embedded at once, on its own thread. Those that come
    while none is wait, and the first of them embeds them all as soon as one is.

    Args:
        engine: Embeds.
        runs: How many runs there may be at once: one for each core that they may use.
    """

    def __init__(self, engine: EmbeddingEngine, runs: int = 1) -> None:
        self._engine = engine
        self._free = runs
        self._waiting: deque[_Query] = deque()  # empty while a run is free
        self._lock = threading.Lock()

    @property
    def model(self) -> Model:
        """The model that the engine runs."""
        return self._engine.model

    @property
    def device(self) -> str:
        """The device it runs on."""
        return self._engine.device

    @property
    def batch(self) -> int:
        """How many texts to give it at once."""
        return self._engine.batch

    def embed_texts(
        self, texts: Sequence[str], done: Callable[[int], None] | None = None
    ) -> Vectors:
        """Embed texts as they are stored; see the port."""
        return self._engine.embed_texts(texts, done)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries together; see the port."""
        return self._engine.embed_queries(texts)

    def embed_query(self, text: str) -> Vectors:
        """Embed one query, perhaps together with those of other threads; see the port."""
        query = _Query(text)
        with self._lock:
            waits = not self._free
            if waits:
                self._waiting.append(query)
            else:
                self._free -= 1
        if waits and (vector := query.turn.result()) is not None:
            return vector
        return self._run(query)

    def _run(self, query: _Query) -> Vectors:
        """Embed a query and those that wait, and give the others theirs."""
        others = self._taken()
        try:
            vectors = self._engine.embed_queries([query.text, *(other.text for other in others)])
        except BaseException as error:  # whatever it is: nobody may be left waiting
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
            most = min(len(self._waiting), MOST_TOGETHER - 1)
            return [self._waiting.popleft() for _ in range(most)]

    def _pass_on(self) -> None:
        """Let the query that has waited longest make the next run."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().turn.set_result(None)
            else:
                self._free += 1
