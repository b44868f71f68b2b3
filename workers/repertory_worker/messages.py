"""The workers' Redis transport, which accepts only messages that may be our tasks.

Some unreadable messages would make Celery end a worker, and any program with access to Redis can
send them.
"""

import base64
import logging
import time
import zlib
from datetime import UTC, datetime
from queue import Empty
from typing import Any

import msgspec
from kombu.transport import redis as kombu_redis
from kombu.transport import virtual
from kombu.utils.json import dumps
from redis import Redis, RedisError, ResponseError
from typing_extensions import override

from repertory.indexing.celery_queue import (
    BEGIN,
    KEEP_KEYWORDS,
    VISIBILITY_TIMEOUT_S,
    WRITE,
    renewed_at,
    server_time,
)

TASKS = frozenset({WRITE, BEGIN, KEEP_KEYWORDS})
COMPRESSIONS = frozenset({None, "application/x-gzip"})
MAX_ID_LENGTH = 200
MAX_SIZE = 64 * 2**20  # bytes of an uncompressed body; the largest item is far smaller
REFUSED_PAUSE_S = 2.0  # the pause after Redis refused a write, for example because it is full
_NOT_OF_THE_MESSAGE = (Empty, RedisError, OSError)  # errors that are not the message's fault

_log = logging.getLogger(__name__)


class _Headers(msgspec.Struct):
    task: str
    id: str
    eta: str | None = None
    compression: str | None = None
    redelivered: bool = False
    traceparent: str | None = None


class _Properties(msgspec.Struct):
    delivery_tag: str


class _Message(msgspec.Struct):
    body: str
    headers: _Headers
    properties: _Properties


def task_message(raw: object, queue: str) -> dict[str, Any]:
    """Copy only the fields that our tasks need from an untrusted message.

    Args:
        raw: The decoded JSON.
        queue: The queue that it was taken from.

    Raises:
        ValueError: It is not one of our messages.
    """
    found = msgspec.convert(raw, _Message)
    headers, tag = found.headers, found.properties.delivery_tag
    if headers.task not in TASKS or headers.compression not in COMPRESSIONS:
        raise ValueError("another task or compression")
    if not all(0 < len(text) <= MAX_ID_LENGTH for text in (headers.id, tag)):
        raise ValueError("no usable id")
    body = base64.b64decode(found.body, validate=True)
    if headers.compression:
        _check_packed(body)
    if headers.traceparent and len(headers.traceparent) > MAX_ID_LENGTH:
        headers.traceparent = None
    if headers.eta is not None:
        due = datetime.fromisoformat(headers.eta)
        headers.eta = due.astimezone(UTC).isoformat()
    return {
        "body": found.body,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {
            "lang": "py",
            "argsrepr": "…",
            "kwargsrepr": "{}",
            **{name: value for name, value in msgspec.to_builtins(headers).items() if value},
        },
        "properties": {
            "body_encoding": "base64",
            "delivery_info": {"exchange": "", "routing_key": queue},
            "delivery_mode": 2,
            "delivery_tag": tag,
            "priority": 0,
        },
    }


def _check_packed(body: bytes) -> None:
    """Check that a compressed body is complete and at most ``MAX_SIZE`` when decompressed.

    Raises:
        ValueError: It is damaged, incomplete or too large.
    """
    unpacking = zlib.decompressobj()
    try:
        unpacking.decompress(body, MAX_SIZE)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        raise ValueError("incomplete, or too large")


class QoS(kombu_redis.QoS):
    """Kombu's record of unacknowledged messages, which drops those that cannot be read.

    If a message cannot be acknowledged because Redis is unavailable, it counts as done here.
    Otherwise the worker would wait for it and never take another one. If Redis kept the message, it
    is delivered again, which is harmless.
    """

    @override
    def append(self, message: Any, delivery_tag: str) -> None:
        """Record a taken message like Kombu, but renewed, as its worker may be killed at once."""
        place = message.delivery_info
        stored = dumps([message._raw, place["exchange"], place["routing_key"]])
        renewed = renewed_at(self._server_time())
        with self.pipe_or_acquire() as pipe:
            pipe.zadd(self.unacked_index_key, {delivery_tag: renewed})
            pipe.hset(self.unacked_key, delivery_tag, stored).execute()
        virtual.QoS.append(self, message, delivery_tag)

    @override
    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except (RedisError, OSError):
            virtual.QoS.ack(self, delivery_tag)
            raise

    @override
    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue=requeue)
        except (RedisError, OSError):
            virtual.QoS.ack(self, delivery_tag)
            raise

    @override
    def restore_visible(self, *args: Any, **options: Any) -> None:
        behind = self._server_time() - time.time()
        # Kombu compares with its own clock.
        self.visibility_timeout = round(VISIBILITY_TIMEOUT_S - behind)
        try:
            super().restore_visible(*args, **options)
        except ResponseError as error:
            time.sleep(REFUSED_PAUSE_S)  # because Celery reconnects without a pause
            # Kombu does not log this with a traceback every few seconds.
            raise ConnectionError(str(error)) from error

    def _server_time(self) -> float:
        with self.channel.conn_or_acquire() as client:  # type: ignore[attr-defined]  # not in its stubs
            return server_time(client)

    @override
    def restore_by_tag(
        self, tag: str, client: "Redis | None" = None, leftmost: bool = False
    ) -> None:
        try:
            super().restore_by_tag(tag, client=client, leftmost=leftmost)
        except _NOT_OF_THE_MESSAGE:
            raise
        except Exception as error:
            _refused("", error)
            with self.channel.conn_or_acquire(client) as redis:  # type: ignore[attr-defined]  # not in its stubs
                redis.hdel(self.unacked_key, tag)
                redis.zrem(self.unacked_index_key, tag)


class Channel(kombu_redis.Channel):
    """Kombu's channel, which drops messages that are not ours."""

    QoS = QoS

    def _brpop_read(self, **options: object) -> object:
        transport: Transport = self.connection  # type: ignore[assignment]  # of this class
        transport.is_delivering = False
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # not in its stubs
        except _NOT_OF_THE_MESSAGE:
            raise
        except Exception as error:
            if transport.is_delivering:  # Celery has the message already
                raise
            _refused("", error)
            return True

    @override
    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        while True:
            try:
                return task_message(super()._get(queue), queue)
            except _NOT_OF_THE_MESSAGE:
                raise
            except Exception as error:
                _refused(queue, error)


class Transport(kombu_redis.Transport):
    """Kombu's transport, with this module's channel.

    Attributes:
        is_delivering: Whether the last read message was passed to Celery.
    """

    Channel = Channel
    is_delivering = False

    @override
    def _deliver(self, message: object, queue: str | None) -> None:
        readable = task_message(message, queue or "")
        self.is_delivering = True
        super()._deliver(readable, queue)


def _refused(queue: str, error: Exception) -> None:
    """Log why a message is dropped, without its content."""
    _log.error("message_refused", extra={"queue": queue, "reason": type(error).__name__})
