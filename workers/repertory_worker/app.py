"""The Celery worker: its tasks, the start of each process, and the loop that waits for work."""

import functools
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from celery import Celery, signals
from celery.exceptions import CPendingDeprecationWarning, Reject
from celery.utils.log import get_multiprocessing_logger

from repertory.compose import Parts
from repertory.errors import ConfigurationError, StoreError
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
from repertory_worker.process import Process

_log = logging.getLogger(__name__)


def run(settings: Settings, *, concurrency: int = 1, only: Sequence[str] = QUEUES) -> None:
    """Work until SIGTERM, which lets the tasks that are running finish. Logging is the caller's.

    Args:
        settings: What is in force.
        concurrency: How many processes work, each with a model of its own.
        only: Which of the ``QUEUES`` they take from, always in the order that these have.

    Raises:
        ConfigurationError: The settings are not those of a team, or there is no such queue.
    """
    Parts(settings, Path.cwd()).queue()  # refuses the settings, if they are to be refused
    assert settings.values.redis_url
    if unknown := set(only) - set(QUEUES):
        raise ConfigurationError(
            f"There is no queue {', '.join(sorted(unknown))}; there are {', '.join(QUEUES)}."
        )
    queues = [queue for queue in QUEUES if queue in only]
    app = celery_app(settings.values.redis_url)
    _register(app, settings, queues)
    logging.getLogger("celery.app.trace").setLevel(logging.ERROR)  # it repeats task_given_back
    # Of a setting that is as we want it, each time that Redis is lost.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    worker = app.Worker(
        concurrency=concurrency,
        queues=[redis_key(queue) for queue in queues],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()


def _register(app: Celery, settings: Settings, queues: Sequence[str]) -> None:
    """Add the tasks to Celery, and what each process does when it starts."""

    @functools.cache
    def process() -> Process:  # made after the fork: no connection and no model is shared
        return Process(settings, app, queues)

    @app.task(name=WRITE)
    def write(text: object, queue: str) -> None:
        with _given_back():
            process().write(text, QueueName(queue))

    @app.task(name=BEGIN)
    def begin(configuration: str, generation: int | None) -> None:
        with _given_back():
            process().begin(configuration, generation)

    @app.task(name=KEEP_KEYWORDS)
    def keep_keywords(collection: str) -> None:
        with _given_back():
            process().keep_keywords(collection)

    def start(**_: object) -> None:
        process().start()

    def ready(**_: object) -> None:
        _log.info("worker_ready", extra={"queues": list(queues)})

    def keep_logging(**_: object) -> None:
        """Celery configures logging unless somebody listens here."""
        if processes := get_multiprocessing_logger():
            processes.propagate = True  # what it says of its processes goes where all goes

    signals.worker_process_init.connect(start, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.setup_logging.connect(keep_logging, weak=False)


@contextmanager
def _given_back() -> Iterator[None]:
    """While a store stays away, a task waits in its queue, behind whatever came meanwhile."""
    try:
        yield
    except StoreError as error:
        _log.warning("task_given_back", extra={"error": str(error)})
        raise Reject(str(error), requeue=True) from error
