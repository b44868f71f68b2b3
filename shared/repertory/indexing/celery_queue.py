"""Jobs on Celery and Redis: the configuration of Celery, and the queue that submits jobs.

Tasks are called by name, so this module does not need the workers' code.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from kombu import Queue
from kombu.exceptions import OperationalError
from redis import ConnectionError, Redis  # noqa: A004 - the client's, which ``translated`` knows
from redis.connection import parse_url
from typing_extensions import override

from repertory.catalogue.views import RECIPE
from repertory.coordination.redis_server import CONNECT_TIMEOUT_S, TIMEOUT_S, RedisServer
from repertory.errors import StoreError
from repertory.indexing.job import Job, JobQueue, QueueName
from repertory.telemetry import spans
from repertory.values import NAMESPACE

WRITE = "repertory.write"
BEGIN = "repertory.begin"
KEEP_KEYWORDS = "repertory.keep_keywords"

MAINTENANCE = "maintenance"
SNAPSHOTS = "snapshots"
# In the order in which workers take from them. An outdated build must not delay the start of the
# next one. Keyword snapshots are last, because they only save time.
QUEUES = (QueueName.SAVES.value, MAINTENANCE, QueueName.BUILDS.value, SNAPSHOTS)
# Waiting requests. The coordinator repeats them while no worker runs.
MAX_MAINTENANCE = 100

TASK_TIMEOUT_S = 600.0  # a first task may have to download the model
# After this time an unacknowledged message is delivered again. It must be longer than any task and
# any delay, or another worker would get the same message in the meantime.
VISIBILITY_TIMEOUT_S = 1_800
# A worker renews its messages, first when it takes them. So the messages of a killed worker are
# delivered again after this time.
LEASE_S = 20.0
RESTORE_INTERVAL_S = 5.0  # between two checks for such messages

_UNACKED = "unacked"
_UNACKED_INDEX = "unacked_index"  # when each message was taken, by its tag


def redis_key(queue: str, namespace: str = NAMESPACE) -> str:
    """The Redis list of one of the ``QUEUES``."""
    return f"{namespace}:{queue}"


def server_time(client: Redis) -> float:
    """The time of the Redis server in Unix seconds, because the workers' clocks may differ."""
    seconds, microseconds = client.time()
    return float(seconds + microseconds / 1_000_000)


def renewed_at(now: float) -> float:
    """The time to store for a message that is renewed now, by the clock of Redis.

    Kombu takes it for the time of delivery, and delivers the message again ``VISIBILITY_TIMEOUT_S``
    later, which is ``LEASE_S`` from now.
    """
    return now - VISIBILITY_TIMEOUT_S + LEASE_S


def celery_app(redis_url: str, namespace: str = NAMESPACE) -> Celery:
    """The Celery application with Repertory's configuration. It does not connect yet."""
    keys = [redis_key(queue, namespace) for queue in QUEUES]
    broker, tls = _broker(redis_url)
    app = Celery("repertory", broker=broker, set_as_current=False)
    app.conf.update(
        broker_use_ssl=tls,
        task_queues=[Queue(key, routing_key=key) for key in keys],
        # No exchange, because its bindings would be lost if Redis is flushed.
        task_default_exchange="",
        task_default_queue=redis_key(MAINTENANCE, namespace),
        task_create_missing_queues=False,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_acks_on_timeout=False,  # delivered again; ``Failures`` counts the attempts
        task_reject_on_worker_lost=True,
        task_time_limit=TASK_TIMEOUT_S,
        worker_prefetch_multiplier=1,
        worker_lost_wait=1.0,
        worker_enable_remote_control=False,  # workers report to the status board
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        # Not needed, because doing a task twice is harmless.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_channel_error_retry=True,  # also while Redis is full and refuses writes
        broker_transport_options={
            # Take from queues in the order of ``QUEUES``, not round-robin.
            "queue_order_strategy": "priority",
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "unacked_key": redis_key(_UNACKED, namespace),
            "unacked_index_key": redis_key(_UNACKED_INDEX, namespace),
            "unacked_mutex_key": redis_key("unacked_mutex", namespace),
            "unacked_mutex_expire": 10,
            "unacked_restore_interval": RESTORE_INTERVAL_S,
            "unacked_restore_throttle": 1,  # each time
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_timeout": TIMEOUT_S,
            # Connection attempts when submitting; a worker's consumer retries for ever.
            "max_retries": 1,
            "interval_start": 0.1,
        },
    )
    return app


def _broker(redis_url: str) -> tuple[str, dict[str, Any] | None]:
    """The server's URL without parameters, and the TLS options, both as the Redis client has them.

    Kombu fails on parameters that it does not know, checks certificates only if they are required,
    and with the workers' transport it does not use TLS because of the URL alone.
    """
    parts = urlsplit(redis_url)
    # The client's parser has no types.
    options: Mapping[str, Any] = parse_url(redis_url)  # type: ignore[no-untyped-call]
    url = parts._replace(path=f"/{options.get('db', 0)}", query="").geturl()
    given = {name: value for name, value in options.items() if name.startswith("ssl_")}
    return url, {"ssl_cert_reqs": "required", **given} if parts.scheme == "rediss" else None


def _is_request(message: bytes | str, task_id: str) -> bool:
    """Whether a waiting message is the task with an id. The message is untrusted."""
    try:
        return bool(json.loads(message)["headers"]["id"] == task_id)
    except (ValueError, TypeError, LookupError, RecursionError):
        return False


class CeleryQueue(JobQueue):
    """Sends jobs to the workers through Redis. Thread-safe."""

    def __init__(self, redis_url: str, namespace: str = NAMESPACE) -> None:
        self._redis = RedisServer(redis_url, namespace)
        self._app = celery_app(redis_url, namespace)

    @override
    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        # As text, because Celery would interpret special keys in an item's schema.
        self._send(WRITE, queue_name, json.dumps(job.plain()), queue_name.value, delay=delay)

    @override
    def begin(self, configuration: str, generation: int | None = None) -> None:
        waiting = self._length(MAINTENANCE)
        if waiting >= MAX_MAINTENANCE:
            raise StoreError(
                f"No worker takes requests, so {waiting} of them wait; start `repertory worker`."
            )
        # A worker that is killed as it takes a message loses it. A rebuild is requested only once,
        # so its message is sent twice; the second one finds the collection.
        for _ in range(1 if generation is None else 2):
            self._send(BEGIN, MAINTENANCE, configuration, generation, RECIPE)

    @override
    def keep_keywords(self, collection: str) -> None:
        with self._redis.translated():
            waiting = self._redis.client.lrange(self._redis.key(SNAPSHOTS), 0, -1)
        if not any(_is_request(message, collection) for message in waiting):
            self._send(KEEP_KEYWORDS, SNAPSHOTS, collection, task_id=collection)

    @override
    def waiting(self) -> dict[str, int]:
        return {name.value: self._length(name) for name in QueueName}

    @override
    def taken(self) -> int:
        with self._redis.translated():
            return self._redis.client.hlen(self._redis.key(_UNACKED))

    def renew(self, tags: Iterable[str]) -> None:
        """Prevent messages that this process has taken from being delivered again for ``LEASE_S``.

        Args:
            tags: Their delivery tags. Unknown tags are ignored.
        """
        if renewed := [*tags]:
            client = self._redis.client
            with self._redis.translated():
                times = dict.fromkeys(renewed, renewed_at(server_time(client)))
                client.zadd(self._redis.key(_UNACKED_INDEX), times, xx=True)

    def _length(self, queue: str) -> int:
        with self._redis.translated():
            return self._redis.client.llen(self._redis.key(queue))

    def _send(
        self,
        task: str,
        queue: str,
        *args: object,
        delay: float = 0.0,
        task_id: str | None = None,
    ) -> None:
        with (
            spans.span(
                f"send {task}", {"messaging.destination.name": queue}, kind=spans.Kind.PRODUCER
            ),
            self._redis.translated(),
        ):
            parent = spans.current()
            try:
                self._app.send_task(
                    task,
                    args=args,
                    queue=self._redis.key(queue),
                    countdown=delay or None,
                    task_id=task_id,
                    headers={spans.PARENT: parent} if parent else None,
                    compression="gzip",
                    argsrepr="…",  # keeps the job's content out of headers and logs
                    retry=False,
                )
            except OperationalError as error:  # kombu's wrapper around the client's error
                raise error.__cause__ or ConnectionError(str(error)) from None
