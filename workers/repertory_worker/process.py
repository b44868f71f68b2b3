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

from repertory.catalogue.views import RECIPE
from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WordsEngine
from repertory.errors import JobError, NewerReleaseError, StoreError
from repertory.indexing import maintenance
from repertory.indexing.attempts import attempt
from repertory.indexing.celery_queue import LEASE_S, redis_key
from repertory.indexing.job import Job, QueueName, job_of
from repertory.indexing.pace import Pace, text_count
from repertory.indexing.save_trace import processing
from repertory.settings import Settings
from repertory.text import clean
from repertory_worker.snapshots import Snapshots
from repertory_worker.waiting_tasks import WaitingTasks, waiting_beside

# Between attempts while a store is unavailable. After the last, the task goes back to its queue.
RETRY_INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 2.0, 2.0)
HEARTBEAT_INTERVAL_S = 2.0
MODEL_INTERVAL_S = 2.0  # between two checks of the model; doubled while it cannot be loaded
MAX_MODEL_INTERVAL_S = 60.0
NEWER_PAUSE_S = 2.0  # after a task for a newer release, so that its workers get it
# How often a task for a newer release is put back. Then it is dropped, and the watch service sends
# lost items again.
MAX_RETURNS = 10

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class WorkerProcess:
    """Does tasks, one at a time, and reports to the status board.

    Each task raises ``StoreError`` if a store stays unavailable, and ``NewerReleaseError`` if a
    worker of a newer release must do it. The same task can then be done later.
    """

    def __init__(self, settings: Settings, app: Celery, queues: Sequence[str]) -> None:
        parts = Parts(settings, Path.cwd())
        self._writer = parts.writer()
        self._queue = parts.queue()
        self._failures = parts.coordination.failures
        self._board = parts.coordination.status
        self._tags: list[str] = []  # the delivery tags of its messages
        self._errors: dict[str, str] = {}  # why it cannot work now, by cause
        self._broker = app.connection_for_read()
        self._queues = list(queues)
        self._namespace = settings.values.namespace
        self._engine: EmbeddingEngine | None = None  # None until it is loaded
        self._has_news = threading.Event()  # triggers a report at once
        self._busy: dict[str, object] = {}
        self._snapshots = Snapshots(settings)
        self._pace = Pace()
        self._jobs = self._items = 0

    def start(self) -> None:
        """Start the threads for reports, the model, the renewal of messages, and snapshots."""
        threads = {
            "heartbeat": self._heartbeat,
            "model": self._follow_model,
            "renewal": self._renewal,
            "snapshots": self._snapshots.run,
        }
        for name, run in threads.items():
            threading.Thread(target=run, name=name, daemon=True).start()

    def write(self, text: object, queue_name: QueueName, tag: str, parent: str = "") -> None:
        """Do a job, given as JSON, together with others that wait in the same queue.

        Args:
            text: The job.
            queue_name: The queue that it was taken from.
            tag: The delivery tag of its message.
            parent: The ``traceparent`` of its message.
        """
        newer: NewerReleaseError | None = None
        jobs: list[Job] = []
        key = redis_key(queue_name, self._namespace)
        with self._holding(tag), waiting_beside(self._broker, key) as others:
            try:
                first = self._with_retries(lambda: self._read(text))
            except NewerReleaseError as error:
                first, newer = None, error
            if first or newer:
                jobs = self._gathered(first, others, queue_name)
                others.end()
                self._tags += others.tags
                self._renew()
                self._do(jobs, queue_name, [parent, *others.parents])
        if newer:
            if not jobs:
                time.sleep(NEWER_PAUSE_S)
            raise newer

    def _do(self, jobs: Sequence[Job], queue_name: QueueName, parents: Sequence[str]) -> None:
        if not jobs:
            return
        items = sum(len(job.items) + len(job.removed) for job in jobs)
        work = {"queue": queue_name.value, "jobs": len(jobs), "items": items}
        began = time.monotonic()
        with self._working(task="write", **work), processing(jobs, parents):
            self._with_retries(
                lambda: attempt(
                    jobs,
                    queue_name,
                    writer=self._writer,
                    failures=self._failures,
                    queue=self._queue,
                )
            )
        self._pace.took(queue_name, sum(map(text_count, jobs)), time.monotonic() - began)
        self._jobs += len(jobs)
        self._items += items
        self._errors.pop("release", None)
        _log.info("jobs_done", extra=work)

    def begin(self, configuration: str, generation: int | None, recipe: int, tag: str) -> None:
        """Find or create the target collection of a configuration.

        Args:
            configuration: The configuration hash.
            generation: The generation to create unless it exists; None uses the newest.
            recipe: The embedding recipe of the requesting release. Requests with an older recipe
                are ignored.
            tag: The delivery tag of its message.
        """
        if recipe > RECIPE:
            error = NewerReleaseError("The watch service is newer than this worker; upgrade it.")
            if self._may_return(f"begin:{configuration}:{generation}:{recipe}", error):
                time.sleep(NEWER_PAUSE_S)
                raise error
        if recipe == RECIPE:
            with self._holding(tag), self._working(task="begin", configuration=configuration):
                self._with_retries(
                    lambda: maintenance.begin(
                        configuration, generation, writer=self._writer, failures=self._failures
                    )
                )

    def keep_keywords(self, collection: str) -> None:
        """Request a new keyword snapshot of a collection, which is stored beside other tasks."""
        self._snapshots.request(collection)

    def _read(self, text: object) -> Job | None:
        """Decode a job; None if it is unreadable, which is recorded as a failure.

        Raises:
            NewerReleaseError: A worker of a newer release must do it.
        """
        try:
            data = json.loads(str(text))
        except (ValueError, RecursionError):
            data = text
        try:
            return job_of(data)
        except NewerReleaseError as error:
            if self._may_return(clean(str(data.get("id", ""))), error):
                raise
            return None
        except JobError as error:
            unread = data if isinstance(data, dict) else {}
            failure = Failure(
                id=clean(str(unread.get("id", ""))) or uuid.uuid4().hex,
                collection=clean(str(unread.get("collection", ""))),
                items={},
                error=str(error),
                at=time.time(),
                attempts=1,
            )
            self._failures.add(failure)
            _log.error("job_unreadable", extra={"job": failure.id, "error": failure.error})
            return None

    def _may_return(self, task: str, error: NewerReleaseError) -> bool:
        """Whether to put a task for a newer release back into its queue, or to drop it."""
        self._errors["release"] = str(error)
        times = self._failures.attempt(f"{task}:returned")
        _log.warning("task_of_newer_release", extra={"task": task, "error": str(error)})
        return times <= MAX_RETURNS

    def _gathered(
        self, first: Job | None, others: WaitingTasks, queue_name: QueueName
    ) -> list[Job]:
        """A job and waiting ones, up to the number of texts for one batch."""
        jobs = [first] if first else []
        room = self._pace.texts(queue_name, self._engine) - sum(map(text_count, jobs))
        while room > 0 and (text := next(others, None)) is not None:
            try:
                job = self._read(text)
            except NewerReleaseError:
                others.leave()
                continue
            if job:
                jobs.append(job)
                room -= text_count(job)
        return jobs

    def _with_retries(self, do: Callable[[], Result]) -> Result:
        """Call a function, and retry while a store is unavailable."""
        for pause in (*RETRY_INTERVALS_S, None):
            try:
                result = do()
            except StoreError as error:
                is_news = self._errors.get("store") != str(error)
                self._errors["store"] = str(error)
                if pause is None:
                    raise
                if is_news:
                    _log.warning("store_unavailable", extra={"error": str(error)})
                time.sleep(pause)
            else:
                self._errors.pop("store", None)
                return result
        raise AssertionError

    @contextmanager
    def _working(self, **task: object) -> Iterator[None]:
        self._busy = {**task, "since": time.time()}
        try:
            yield
        finally:
            self._busy = {}

    @contextmanager
    def _holding(self, tag: str) -> Iterator[None]:
        """Renew a message during the block, and others that are added to ``_tags``."""
        self._tags = [tag]
        try:
            yield
        finally:
            self._tags = []

    def _renewal(self) -> None:
        while True:
            time.sleep(LEASE_S / 4)
            try:
                self._renew()
            except Exception:  # keep the thread alive, or another worker does the same job too
                _log.exception("renewal_failed")

    def _renew(self) -> None:
        with suppress(StoreError):  # the next renewal is soon
            self._queue.renew(self._tags)

    def _heartbeat(self) -> None:
        name = f"worker:{socket.gethostname()}:{os.getpid()}"
        while True:
            try:
                with suppress(StoreError):  # the next report is soon
                    self._board.report(name, self._status())
            except Exception:  # keep the thread alive: a worker without reports counts as dead
                _log.exception("heartbeat_failed")
            self._has_news.wait(HEARTBEAT_INTERVAL_S)
            self._has_news.clear()

    def _follow_model(self) -> None:
        """Load the model before the first save needs it, and detect when it changes."""
        pause = MODEL_INTERVAL_S
        while True:
            try:
                is_loaded = self._load_model()
            except Exception:  # keep the thread alive, as the next attempt may succeed
                _log.exception("model_failed")
                is_loaded = False
            pause = MODEL_INTERVAL_S if is_loaded else min(2 * pause, MAX_MODEL_INTERVAL_S)
            time.sleep(pause)

    def _status(self) -> dict[str, object]:
        engine = self._engine
        return {
            "model": engine.model.id if engine else "",
            "device": engine.device if engine else "",
            "queues": self._queues,
            "busy": self._busy or self._snapshots.busy,
            "jobs": self._jobs,
            "items": self._items,
            "error": " ".join(self._errors.copy().values()),
        }

    def _load_model(self) -> bool:
        """Load the writer's engine unless it is loaded; whether it is loaded now."""
        try:
            engine = self._writer.engine
            error = ""
            if isinstance(engine, WordsEngine):
                error = f"Only keywords are indexed: {engine.reason}"
        except StoreError as unavailable:
            error = str(unavailable)
        if error:
            _log.warning("model_unavailable", extra={"error": error})
            self._errors["model"] = error
            return False
        self._errors.pop("model", None)
        if engine is not self._engine:
            self._engine = engine
            self._has_news.set()
            _log.info("model_loaded", extra={"model": engine.model.id, "device": engine.device})
        return True
