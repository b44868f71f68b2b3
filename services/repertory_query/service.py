"""What the routes need of a running server. All of it may block."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import StoreError
from repertory.index.vectors import VectorStore
from repertory.indexing import attempts
from repertory.indexing.collections import (
    configuration_of,
    generation_of,
    generations,
    model_slug,
    next_alias,
)
from repertory.indexing.job import JobQueue, QueueName
from repertory.local import Local
from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.live import LiveSearch
from repertory.search.query import Query
from repertory.serving import Parts
from repertory_query.recent import Recent

SILENCE = 60.0  # seconds; each process speaks every few seconds, also in the middle of a task

T = TypeVar("T")


class Service(Local):
    """The server as a caller sees it. Safe to call from several threads.

    Args:
        parts: Whose store, board and failures are looked at.
        live: The search.
        queue: Where a rebuild is asked for, and failed jobs go once more.

    Attributes:
        recent: What was searched for lately.
    """

    def __init__(self, parts: Parts, live: LiveSearch, queue: JobQueue) -> None:
        self.settings = parts.settings
        self.workspace = parts.workspace
        self._parts = parts
        self._live = live
        self._queue = queue
        self.recent = Recent()

    @property
    def engine(self) -> SearchEngine:
        """The search engine in force; StoreError when there is none."""
        return self._live.engine

    @property
    def missing(self) -> dict[str, str]:
        """What is missing, by part, in words."""
        return self._live.missing

    @property
    def is_ready(self) -> bool:
        """Whether a search can be answered."""
        try:
            return bool(self.engine)
        except StoreError:
            return False

    def embedding(self) -> EmbeddingEngine:
        """The engine that embeds queries, waiting for it; ModelError when there is none."""
        return self._parts.queries.get()

    def vector_store(self) -> VectorStore:
        """The vector store."""
        return self._parts.store

    def search(self, query: Query) -> Answer:
        """Search the index as it is, and remember that; see ``SearchEngine.search``."""
        began = time.perf_counter()
        answer = super().search(query)
        self.recent.note(query.text, len(answer.hits), answer.mode, time.perf_counter() - began)
        return answer

    def stats(self) -> dict[str, Any]:
        """What is indexed, how fresh it is and what is wrong; whatever of it can be had."""
        adapters = self._parts.adapters
        troubles: list[str] = []
        board = _had(adapters.status.reports, troubles)
        said = board or {}
        waiting = _had(self._queue.waiting, troubles) or {}
        failed = _had(adapters.failures.list, troubles)
        if board is not None:
            troubles += self._silent(board)
        watch = said.pop("watch", None)
        if watch and (trouble := watch.get("trouble")):
            troubles.append(trouble)
        if watch and (error := watch.get("configuration_error")):
            troubles.append(f"{error} The last good configuration stays in force.")
        of_watch = dict(watch or {})
        problems = of_watch.pop("problems", [])
        engine = self._live.engine if self.is_ready else None
        has = engine and engine.collection
        collection = has.name if has else of_watch.get("collection", "")
        return {
            "indexVersion": engine.version if engine else 0,
            "configuration": configuration_of(collection),
            "collection": collection,
            "model": model_slug(collection),
            "items": len(engine.keywords) if engine and engine.keywords else 0,
            "missing": self.missing,
            "callsAllowed": self.calls_allowed,
            "sources": of_watch.pop("sources", []),
            "building": of_watch.pop("building", None),
            "queue": {
                **{name.value: waiting.get(name.value) for name in QueueName},
                "failed": None if failed is None else len(failed),
            },
            "workers": [{"worker": who, **one} for who, one in sorted(said.items())],
            "problems": [
                *({"severity": "error", "message": one} for one in dict.fromkeys(troubles)),
                *problems,
            ],
            "watch": of_watch or None,
            "counters": _had(adapters.status.counters, troubles) or {},
        }

    def rebuild(self) -> dict[str, Any]:
        """Ask for the index to be built anew, beside the one in force.

        While that is under way, another call changes nothing.

        Returns:
            The configuration and the generation that is being built.

        Raises:
            StoreError: A store is away, or nobody has said yet what is to be indexed.
        """
        store = self._parts.store
        collection = store.alias(self._parts.in_force)
        watch = self._parts.adapters.status.reports().get("watch")
        configuration = watch["configuration"] if watch else configuration_of(collection or "")
        if not configuration:
            raise StoreError(
                "There is nothing to rebuild yet: the watch service has not said what is to be "
                "indexed; see that it runs."
            )
        under_way = store.alias(next_alias(configuration))
        if under_way and under_way != collection:
            return {"configuration": configuration, "generation": generation_of(under_way)}
        there = generations(store, configuration, model_slug(collection or ""))
        generation = max(map(generation_of, there), default=0) + 1
        self._queue.begin(configuration, generation)
        return {"configuration": configuration, "generation": generation}

    def jobs(self) -> dict[str, Any]:
        """What waits, what is being done, and what failed."""
        adapters = self._parts.adapters
        return {
            "waiting": self._queue.waiting(),
            "running": [
                {"worker": who, **busy}
                for who, one in sorted(adapters.status.reports().items())
                if (busy := one.get("busy"))
            ],
            "failed": [
                {
                    "id": failure.id,
                    "items": sorted(failure.items),
                    "error": failure.error,
                    "at": failure.at,
                    "attempts": failure.attempts,
                }
                for failure in adapters.failures.list()
            ],
        }

    def retry(self, ids: Sequence[str] | None) -> int:
        """Put failed jobs back on the queue, all of them if no ids are given; returns how many."""
        return attempts.retry(self._parts.adapters.failures, self._queue, ids)

    def _silent(self, board: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Which processes a board has heard nothing of lately, though they should run."""
        heard = {who for who, one in board.items() if time.time() - one["at"] < SILENCE}
        silent = []
        if "watch" not in heard:
            silent.append("Nothing is heard of the watch service; start `repertory watch`.")
        if self._parts.is_team and heard <= {"watch"}:
            silent.append("Nothing is heard of a worker; start `repertory worker`.")
        return silent


def _had(read: Callable[[], T], troubles: list[str]) -> T | None:
    """What can be read now; None, and the trouble noted, if it cannot."""
    try:
        return read()
    except StoreError as error:
        troubles.append(str(error))
        return None
