"""One worker process: its model, its connections and its tasks."""

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

# Texts that a CPU embeds together. Meanwhile its process takes no newer save.
BATCH_SIZE = {QueueName.SAVES: 256, QueueName.BUILDS: 32}
# Between attempts while a store is unavailable; then the task goes back to its queue.
RETRY_INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 2.0, 2.0)
HEARTBEAT_INTERVAL_S = 2.0

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Process:
    """Does tasks, one at a time, and reports to the status board.

    Each task raises ``StoreError`` when a store stays unavailable: the same task can be done later.
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
        """Load the model on a thread, before the first save needs it, and report from then on."""
        threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True).start()

    def write(self, text: object, queue_name: QueueName) -> None:
        """Do a job, given as JSON, and those that wait in the same queue."""
        first = self._with_retries(lambda: self._read(text))
        if first is None:
            return
        with waiting_beside(self._broker, redis_key(queue_name)) as others:
            jobs = self._gathered(first, others, queue_name)
            items = sum(len(job.items) + len(job.removed) for job in jobs)
            work = {"queue": queue_name.value, "jobs": len(jobs), "items": items}
            with self._working(task="write", **work):
                self._with_retries(
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
        """Find or create the collection of a configuration's items."""
        with self._working(task="begin", configuration=configuration):
            self._with_retries(lambda: self._writer.begin(configuration, generation))

    def keep_keywords(self, collection: str) -> None:
        """Store a new keyword snapshot of a collection."""
        with self._working(task="keep keywords", collection=collection):
            self._with_retries(lambda: self._writer.keep_keywords(collection))

    def _read(self, text: object) -> Job | None:
        """A job; None if it is unreadable, which becomes a failure."""
        try:
            data = json.loads(str(text))
        except (ValueError, RecursionError):
            data = text
        try:
            return job_of(data)
        except JobError as error:
            unread = data if isinstance(data, dict) else {}
            failure = Failure(
                id=str(unread.get("id") or uuid.uuid4().hex),
                collection=str(unread.get("collection", "")),
                items={},
                error=str(error),
                at=time.time(),
                attempts=1,
            )
            self._failures.add(failure)
            _log.error("job_unreadable", extra={"job": failure.id, "error": failure.error})
            return None

    def _gathered(self, first: Job, others: Iterator[object], queue_name: QueueName) -> list[Job]:
        """A job and waiting ones, up to as many texts as should be embedded together."""
        jobs = [first]
        engine = self._engine
        room = BATCH_SIZE[queue_name] if engine is None or engine.device == "cpu" else engine.batch
        room -= _texts(first)
        while room > 0 and (text := next(others, None)) is not None:
            if job := self._read(text):
                jobs.append(job)
                room -= _texts(job)
        return jobs

    def _with_retries(self, do: Callable[[], Result]) -> Result:
        """Do something, and retry it while a store is unavailable."""
        for pause in RETRY_INTERVALS_S:
            try:
                return do()
            except StoreError as error:
                _log.warning("store_unavailable", extra={"error": str(error)})
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
            with suppress(StoreError):  # the next report comes in a moment
                self._board.report(name, self._status())
            if not self._is_another_model():
                time.sleep(HEARTBEAT_INTERVAL_S)

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
        """Load the writer's engine if it has none; return whether the engine has changed."""
        try:
            engine = self._writer.engine
        except StoreError as error:
            _log.warning("model_unavailable", extra={"error": str(error)})
            return False
        if engine is self._engine:
            return False
        self._engine = engine
        _log.info("model_loaded", extra={"model": engine.model.id, "device": engine.device})
        return True


def _texts(job: Job) -> int:
    """The most texts that a job may embed; at least one, so that gathering ends."""
    return max(1, sum(len(item.views()) for item in job.items))
