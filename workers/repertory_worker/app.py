"""The Celery worker: its tasks, the start of its processes, and its main loop."""

import functools
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from celery import Celery, Task, signals
from celery.exceptions import CPendingDeprecationWarning, Reject
from celery.utils.log import get_multiprocessing_logger

from repertory import telemetry
from repertory.coordination.redis_server import RedisServer
from repertory.errors import ConfigurationError, NewerReleaseError, StoreError
from repertory.indexing.celery_queue import (
    BEGIN,
    KEEP_KEYWORDS,
    QUEUES,
    WRITE,
    celery_app,
    redis_key,
)
from repertory.indexing.job import QueueName
from repertory.settings import Settings
from repertory.telemetry import spans
from repertory_worker.consumer import Consumer
from repertory_worker.messages import Transport
from repertory_worker.process import WorkerProcess

SERVICE = "repertory-worker"  # its name in traces

_log = logging.getLogger(__name__)


def run(settings: Settings, *, concurrency: int = 1, only: Sequence[str] = QUEUES) -> None:
    """Work until SIGTERM, which lets running tasks finish. The caller sets up logging.

    Args:
        settings: The active settings.
        concurrency: The number of processes, each with its own model.
        only: The queues to take from, always in the order of ``QUEUES``.

    Raises:
        ConfigurationError: The settings are not a team's, or a queue does not exist.
        SystemExit: Celery ended because of an error, with exit code 1.
    """
    namespace = settings.values.namespace
    redis_url = settings.team_redis()
    RedisServer(redis_url, namespace)  # raises for an invalid URL
    telemetry.check(wanted=settings.values.telemetry)  # each process starts its own telemetry
    if unknown := set(only) - set(QUEUES):
        raise ConfigurationError(
            f"There is no queue {', '.join(sorted(unknown))}; there are {', '.join(QUEUES)}."
        )
    queues = [queue for queue in QUEUES if queue in only]
    app = celery_app(redis_url, namespace)
    app.conf.broker_transport = Transport
    _register(app, settings, queues)
    # These repeat ``task_returned`` and ``queue_unavailable``.
    for name in ("celery.app.trace", "celery.worker.consumer.consumer"):
        logging.getLogger(name).setLevel(logging.ERROR)
    worker = app.Worker(
        consumer_cls=Consumer,
        concurrency=concurrency,
        queues=[redis_key(queue, namespace) for queue in queues],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    # Celery warns about an intended setting each time the connection to Redis is lost. Creating the
    # worker shows such warnings.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    worker.start()
    if worker.exitcode:  # ``start`` returns even after an error
        raise SystemExit(worker.exitcode)


def _register(app: Celery, settings: Settings, queues: Sequence[str]) -> None:
    """Register the tasks and the signal handlers of the processes with Celery."""

    @functools.cache
    def process() -> WorkerProcess:  # after the fork, so that no connection or model is shared
        return WorkerProcess(settings, app, queues)

    @app.task(name=WRITE, bind=True)
    def write(task: Task[Any, Any], text: object, queue: str) -> None:
        with _returned():
            process().write(text, QueueName(queue), _tag(task), _parent(task))

    @app.task(name=BEGIN, bind=True)
    def begin(
        task: Task[Any, Any], configuration: str, generation: int | None, recipe: int = 0
    ) -> None:
        with _returned(), _continued(task, "begin a collection"):
            process().begin(configuration, generation, recipe, _tag(task))

    @app.task(name=KEEP_KEYWORDS)
    def keep_keywords(collection: str) -> None:
        process().keep_keywords(collection)

    def start(**_: object) -> None:
        telemetry.begin(SERVICE, wanted=settings.values.telemetry)
        process().start()

    def ready(**_: object) -> None:
        _log.info("worker_ready", extra={"queues": list(queues)})

    signals.worker_process_init.connect(start, weak=False)
    signals.worker_process_shutdown.connect(_end, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.setup_logging.connect(_keep_logging, weak=False)


def _keep_logging(**_: object) -> None:
    """Keep our logging, because Celery configures its own unless this signal has a receiver."""
    if processes := get_multiprocessing_logger():
        processes.propagate = True  # send its messages to our handlers


def _end(**_: object) -> None:
    """Send the last spans of a process, because Celery skips Python's exit handlers."""
    spans.end()


def _tag(task: Task[Any, Any]) -> str:
    """The delivery tag of a task's message."""
    return str((task.request.properties or {}).get("delivery_tag"))


def _parent(task: Task[Any, Any]) -> str:
    """The ``traceparent`` of a task's message; empty if missing."""
    return str(getattr(task.request, spans.PARENT, None) or "")


def _continued(task: Task[Any, Any], name: str) -> AbstractContextManager[spans.Span]:
    """The span of a task, in the trace of its sender."""
    parent = _parent(task)
    return spans.span(
        name, kind=spans.Kind.CONSUMER, parent={spans.PARENT: parent} if parent else None
    )


@contextmanager
def _returned() -> Iterator[None]:
    """Put a task that can only be done later back to the end of its queue."""
    try:
        yield
    except (StoreError, NewerReleaseError) as error:
        _log.warning("task_returned", extra={"error": str(error)})
        raise Reject(str(error), requeue=True) from error
