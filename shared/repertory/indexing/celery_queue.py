"""Jobs on Celery and Redis: the one place where Celery is configured, and the queue that submits.

What is done is said by task names, so nothing here needs the workers' code.
"""

import json

from celery import Celery
from kombu import Queue
from kombu.exceptions import OperationalError
from redis import ConnectionError  # noqa: A004 - the client's, which ``translated`` knows

from repertory.coordination.redis_server import CONNECT_TIMEOUT_S, TIMEOUT_S, RedisServer
from repertory.errors import StoreError
from repertory.indexing.job import Job, QueueName

WRITE = "repertory.write"
BEGIN = "repertory.begin"
KEEP_KEYWORDS = "repertory.keep_keywords"

MAINTENANCE = "maintenance"
# In the order in which workers take from them. Maintenance is rare and short, and an outdated build
# should not hold up the beginning of the next.
QUEUES = (QueueName.SAVES.value, MAINTENANCE, QueueName.BUILDS.value)
MAX_MAINTENANCE = 100  # waiting requests: without a worker the coordinator asks again and again

LONGEST_TASK = 600.0  # seconds; a first task may have to download the model
# Seconds after which a message that nobody acknowledged is delivered again. While a longer task
# ran, or waited for its delay to pass, another worker would be handed the same.
VISIBILITY = 1_800


def redis_key(queue: str) -> str:
    """The Redis list of one of the ``QUEUES``."""
    return f"repertory:{queue}"


def celery_app(redis_url: str) -> Celery:
    """Celery as all of Repertory uses it; nothing is connected yet."""
    app = Celery("repertory", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_queues=[Queue(redis_key(queue), routing_key=redis_key(queue)) for queue in QUEUES],
        # Without an exchange there are no bindings that a flushed Redis could lose.
        task_default_exchange="",
        task_default_queue=redis_key(MAINTENANCE),
        task_create_missing_queues=False,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_acks_on_timeout=False,  # delivered again; how often is counted by ``Failures``
        task_reject_on_worker_lost=True,
        task_time_limit=LONGEST_TASK,
        worker_prefetch_multiplier=1,
        worker_lost_wait=1.0,
        worker_enable_remote_control=False,  # the status board says what workers do
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,  # done twice is no harm
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # for ever
        broker_transport_options={
            # In the order of ``QUEUES``, not in turns; before kombu 5.7 in that of a set.
            "queue_order_strategy": "priority",
            "visibility_timeout": VISIBILITY,
            "unacked_key": "repertory:unacked",
            "unacked_index_key": "repertory:unacked_index",
            "unacked_mutex_key": "repertory:unacked_mutex",
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_timeout": TIMEOUT_S,
            # How often whoever submits tries to connect; a worker's consumer tries for ever.
            "max_retries": 1,
            "interval_start": 0.1,
        },
    )
    return app


class CeleryQueue:
    """Hands jobs to the workers that listen on a Redis. Safe to call from several threads."""

    def __init__(self, redis_url: str) -> None:
        self._redis = RedisServer(redis_url)
        self._app = celery_app(redis_url)

    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Hand over a job, to be done some time, but not before so many seconds have passed."""
        # As text: Celery would look for values of its own among the keys of an item's schema.
        self._send(WRITE, queue_name, json.dumps(job.plain()), queue_name.value, delay=delay)

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Ask for the collection that a configuration's items are to be written to."""
        self._ask(BEGIN, configuration, generation)

    def keep_keywords(self, collection: str) -> None:
        """Ask for a fresh keyword snapshot of a collection."""
        self._ask(KEEP_KEYWORDS, collection)

    def waiting(self) -> dict[str, int]:
        """How many jobs wait in each queue; those that a worker has are not counted."""
        with self._redis.translated():
            return {name.value: self._redis.client.llen(redis_key(name)) for name in QueueName}

    def _ask(self, task: str, *args: object) -> None:
        with self._redis.translated():
            waiting = self._redis.client.llen(redis_key(MAINTENANCE))
        if waiting >= MAX_MAINTENANCE:
            raise StoreError(
                f"No worker takes what is asked of it, and {waiting} requests wait; start "
                "`repertory worker`."
            )
        self._send(task, MAINTENANCE, *args)

    def _send(self, task: str, queue: str, *args: object, delay: float = 0.0) -> None:
        with self._redis.translated():
            try:
                self._app.send_task(
                    task,
                    args=args,
                    queue=redis_key(queue),
                    countdown=delay or None,
                    compression="gzip",
                    argsrepr="…",  # else a part of the job is in the headers and in logs
                    retry=False,
                )
            except OperationalError as error:  # kombu's, around the client's
                raise error.__cause__ or ConnectionError(str(error)) from None
