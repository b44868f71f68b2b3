"""One worker process: the model and the connections that it keeps, and what it does with them."""

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from celery import Celery

from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import JobError, StoreError
from repertory.indexing.attempts import attempt
from repertory.indexing.celery_queue import redis_key
from repertory.indexing.job import Job, QueueName, job_of
from repertory.settings import Settings
from repertory_worker.gathering import waiting_beside

# How many texts a CPU does together. While it is at them, its process takes no newer save.
TOGETHER = {QueueName.SAVES: 256, QueueName.BUILDS: 32}
# Seconds between tries while a store is away; then the task goes back to its queue.
PAUSES = (0.25, 0.5, 1.0, 2.0, 2.0, 2.0)
HEARTBEAT = 2.0  # seconds

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Process:
    """Does tasks, one at a time, and says on the status board what it does.

    Each task raises ``StoreError`` when a store stays away: the same task can be done later.
    """

    def __init__(self, settings: Settings, app: Celery, queues: Sequence[str]) -> None:
        parts = Parts(settings, Path.cwd())
        self._writer = parts.writer()
        self._queue = parts.queue()
        self._failures = parts.coordination.failures
        self._board = parts.coordination.status
        self._broker = app.connection_for_read()
        self._queues = list(queues)
        self._engine: EmbeddingEngine | None = None  # until it is loaded
        self._busy: dict[str, object] = {}
        self._jobs = self._items = 0

    def start(self) -> None:
        """Load the model, so that the first save need not wait for it, and say so, on a thread."""
        threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True).start()

    def write(self, text: object, queue_name: QueueName) -> None:
        """Do a job, given as JSON, and those that wait beside it in its queue."""
        first = self._patiently(lambda: self._read(text))
        if first is None:
            return
        with waiting_beside(self._broker, redis_key(queue_name)) as others:
            jobs = self._gathered(first, others, queue_name)
            items = sum(len(job.items) + len(job.removed) for job in jobs)
            work = {"queue": queue_name.value, "jobs": len(jobs), "items": items}
            with self._working(**work):
                self._patiently(
                    lambda: attempt(
                        jobs,
                        queue_name,
                        writer=self._writer,
                        failures=self._failures,
                        queue=self._queue,
                    )
                )
        self._jobs += len(jobs)
        self._items += items
        _log.info("jobs_done", extra=work)

    def begin(self, configuration: str, generation: int | None) -> None:
        """Make or find the collection that a configuration's items are to be written to."""
        with self._working(begin=configuration):
            self._patiently(lambda: self._writer.begin(configuration, generation))

    def keep_keywords(self, collection: str) -> None:
        """Store a fresh keyword snapshot of a collection."""
        with self._working(keep_keywords=collection):
            self._patiently(lambda: self._writer.keep_keywords(collection))

    def _read(self, text: object) -> Job | None:
        """A job; None for what cannot be read, which is put aside: another release may read it."""
        try:
            data = json.loads(str(text))
        except (ValueError, RecursionError):
            data = text
        try:
            return job_of(data)
        except JobError as error:
            unread = data if isinstance(data, dict) else {"unread": data}
            failure = Failure(
                id=str(unread.get("id") or uuid.uuid4().hex),
                collection=str(unread.get("collection", "")),
                items={},
                error=str(error),
                at=time.time(),
                attempts=1,
                job=unread,
            )
            self._failures.add(failure)
            _log.error("job_unreadable", extra={"job": failure.id, "error": failure.error})
            return None

    def _gathered(self, first: Job, others: Iterator[object], queue_name: QueueName) -> list[Job]:
        """A job and those beside it, up to as many texts as should be done at once."""
        jobs = [first]
        engine = self._engine
        room = TOGETHER[queue_name] if engine is None or engine.device == "cpu" else engine.batch
        room -= _texts(first)
        while room > 0 and (text := next(others, None)) is not None:
            if job := self._read(text):
                jobs.append(job)
                room -= _texts(job)
        return jobs

    def _patiently(self, do: Callable[[], Result]) -> Result:
        """Do something, some more times while a store is away."""
        for pause in PAUSES:
            try:
                return do()
            except StoreError as error:
                _log.warning("store_away", extra={"error": str(error)})
                time.sleep(pause)
        return do()

    @contextmanager
    def _working(self, **task: object) -> Iterator[None]:
        self._busy = {**task, "since": time.time()}
        try:
            yield
        finally:
            self._busy = {}

    def _heartbeat(self) -> None:
        name = f"worker:{socket.gethostname()}:{os.getpid()}"
        while True:
            with suppress(StoreError):  # it is said again in a moment
                self._board.report(name, self._status())
            if not self._is_another_model():
                time.sleep(HEARTBEAT)

    def _status(self) -> dict[str, object]:
        engine = self._engine
        return {
            "model": engine.model.id if engine else "",
            "device": engine.device if engine else "",
            "queues": self._queues,
            "busy": self._busy,
            "jobs": self._jobs,
            "items": self._items,
        }

    def _is_another_model(self) -> bool:
        """See which engine the writer has, which it loads if it has none; whether it is new."""
        try:
            engine = self._writer.engine
        except StoreError as error:
            _log.warning("model_away", extra={"error": str(error)})
            return False
        if engine is self._engine:
            return False
        self._engine = engine
        _log.info("model_loaded", extra={"model": engine.model.id, "device": engine.device})
        return True


def _texts(job: Job) -> int:
    """How many texts a job may have to embed; at least one, so that gathering comes to an end."""
    return max(1, sum(len(item.views()) for item in job.items))
